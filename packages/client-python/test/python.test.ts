// The Python client's own tests, each file as one test here; and every route of the protocol has its method in Python, or is left
// out by name. Without a Python these skip with a reason, and in CI they fail.

import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { test } from 'node:test';
import { routes } from '@millrace/protocol';
import { python, runPython } from './run-python.ts';

const options = { skip: python.ok ? false : python.reason };

for (const file of readdirSync(import.meta.dirname)
  .filter((name) => /^test_.*\.py$/.test(name))
  .sort()) {
  test(`python: ${file}`, options, async () => {
    const { code, output } = await runPython(['-W', 'error', '-m', 'unittest', file.replace(/\.py$/, '')]);
    assert.equal(code, 0, output);
    assert.match(output, /Ran [1-9]\d* tests? /);
    assert.doesNotMatch(output, /skipped=/);
  });
}

test('every route of the protocol has a method in Python, or is left out by name', options, async () => {
  const table = Object.fromEntries(Object.entries(routes).map(([name, { method, path }]) => [name, { method, path }]));
  const { code, output } = await runPython(['routes_covered.py'], { input: JSON.stringify(table) });
  assert.equal(code, 0, output);
  assert.deepEqual(JSON.parse(output), { missing: {}, left_out_but_unknown: [] });
});

test('a route that nobody has thought of in Python is found', options, async () => {
  const table = { ...routes, dream: { method: 'POST', path: '/v1/dreams/{id}' } };
  const { output } = await runPython(['routes_covered.py'], { input: JSON.stringify(table, ['dream', 'method', 'path']) });
  assert.match(output, /POST \/v1\/dreams\/\{id\} has no method/);
});
