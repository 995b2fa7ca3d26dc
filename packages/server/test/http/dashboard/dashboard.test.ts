// The dashboard over HTTP: its files with their headers, keys, and the list that follows the store.

import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import type { BriefPage } from '@millrace/protocol';
import { makeTempFolder } from '@millrace/testkit';
import fastify from 'fastify';
import { contentSecurityPolicy, mountStaticFiles } from '../../../src/http/dashboard/static-files.ts';
import { openFloor } from '../floor.ts';

const keys = ['admin-key-0123456789'];
const readKeys = ['reader-key-0123456789'];

test('files have a strict policy, are cached by their names, and unknown ones do not exist', async () => {
  await using folder = await makeTempFolder('mr-dash');
  await mkdir(join(folder.path, 'assets'));
  await writeFile(join(folder.path, 'index.html'), '<!doctype html>');
  await writeFile(join(folder.path, 'assets/index-abc.js'), 'x'.repeat(1000));
  const app = fastify();
  await mountStaticFiles(app, pathToFileURL(`${folder.path}/`));
  const page = await app.inject('/');
  assert.equal(page.headers['content-security-policy'], contentSecurityPolicy);
  assert.doesNotMatch(contentSecurityPolicy, /unsafe|\*/);
  assert.equal(page.headers['cache-control'], 'no-cache');
  assert.equal(page.headers['content-type'], 'text/html; charset=utf-8');
  assert.equal((await app.inject({ url: '/', headers: { 'if-none-match': String(page.headers.etag) } })).statusCode, 304);
  const script = await app.inject({ url: '/assets/index-abc.js', headers: { 'accept-encoding': 'gzip' } });
  assert.match(String(script.headers['cache-control']), /immutable/);
  assert.equal(script.headers['content-encoding'], 'gzip');
  assert.ok(script.rawPayload.length < 100);
  for (const url of ['/assets/other.js', '/assets/..%2findex.html', '/assets/%2e%2e/secret', '/favicon.svg']) {
    const missing = await app.inject(url);
    assert.equal(missing.statusCode, 404, url);
    assert.equal(missing.headers['cache-control'], undefined);
  }
  await app.close();
});

test('a clone that has not built it says how', async () => {
  const app = fastify();
  await mountStaticFiles(app, new URL('file:///nowhere/at/all/'));
  assert.match((await app.inject('/')).body, /npm run build:dashboard/);
  await app.close();
});

test('files need no key; what they show does, and the page learns what its key allows', async () => {
  await using floor = await openFloor({ config: { keys, readKeys } });
  assert.equal((await floor.app.inject('/')).statusCode, 200);
  for (const url of ['/dashboard/api/session', '/dashboard/api/rollouts', '/dashboard/api/summary', '/dashboard/api/rollouts/r/task'])
    assert.equal((await floor.app.inject(url)).statusCode, 401, url);
  const rightOf = async (key: string | undefined) =>
    (await floor.app.inject({ url: '/dashboard/api/session', headers: { authorization: `Bearer ${key}` } })).json().right;
  assert.equal(await rightOf(keys[0]), 'admin');
  assert.equal(await rightOf(readKeys[0]), 'read');
});

test('no route of the API is shadowed', async () => {
  await using floor = await openFloor();
  for (const [url, status] of [
    ['/healthz', 200],
    ['/readyz', 503],
    ['/metrics', 200],
    ['/openapi.json', 200],
    ['/v1/status', 200],
    ['/v1/nowhere', 404],
    ['/nowhere', 404],
  ] as const)
    assert.equal((await floor.app.inject(url)).statusCode, status, url);
  assert.equal((await floor.app.inject('/dashboard/api/session')).json().right, 'admin', 'without keys, a local caller may do everything');
});

test('the list has what was there before it was opened, and follows what comes after', async () => {
  await using floor = await openFloor();
  const first = await floor.submit({ id: 'before' });
  const read = async (): Promise<BriefPage> => (await floor.call('GET', '/dashboard/api/rollouts')).body;
  const until = async (isWanted: (page: BriefPage) => boolean) => {
    for (;;) {
      const page = await read();
      if (isWanted(page)) return page;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  };
  assert.equal((await until(({ complete }) => complete)).rows[0]?.id, first);
  await floor.submit({ id: 'after', metadata: { batch: 'b-1' } });
  const [newest] = (await until(({ total }) => total === 2)).rows;
  assert.deepEqual([newest?.id, newest?.state, newest?.batch], ['after', 'queued', 'b-1']);
  await floor.call('DELETE', '/v1/rollouts/after');
  assert.equal((await until(({ rows }) => rows[0]?.state === 'cancelled')).rows[0]?.id, 'after');
  const { body } = await floor.call('GET', '/dashboard/api/rollouts/after/task');
  assert.equal(body.submission.scenario, 'sums');
  assert.equal(body.submission.id, undefined);
  const { body: log } = await floor.call('GET', '/dashboard/api/rollouts/after/events');
  assert.deepEqual(
    log.events.map(({ kind }: { kind: string }) => kind),
    ['rollout-queue', 'rollout-end'],
  );
  assert.equal((await floor.call('GET', '/dashboard/api/rollouts/unknown/task')).status, 404);
});
