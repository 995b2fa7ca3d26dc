// The route table.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { errorTable, type Route, routes, toPath } from '@millrace/protocol';

const table: readonly Route[] = Object.values(routes);

test('no two routes have the same method and path, and every parameter of a path has a schema', () => {
  assert.equal(new Set(table.map(({ method, path }) => `${method} ${path}`)).size, table.length);
  for (const { path, params } of table) {
    const places = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
    assert.deepEqual(places, Object.keys(params?.shape ?? {}), path);
  }
});

test('the routes of rollouts, backends and the policy are versioned', () => {
  for (const { path, tag } of table)
    if (tag === 'rollouts' || tag === 'evaluations' || tag === 'backends' || tag === 'policy') assert.match(path, /^\/v1\//);
});

test('the errors of a route are in the error table', () => {
  for (const { errors, path } of table) for (const code of errors) assert.ok(code in errorTable, `${path}: ${code}`);
});

test('parameters of a path are escaped', () => {
  assert.equal(toPath(routes.drainBackend.path, { id: '10.0.0.1:8000' }), '/v1/backends/10.0.0.1%3A8000/drain');
  assert.equal(toPath(routes.getStatus.path), '/v1/status');
});
