// Harnesses as data: the ones that come with Millrace are valid, and placeholders are filled in, or refused.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { harnessCatalog } from '../../src/harness/catalog/catalog.ts';
import { type Harness, harness, renderHarness } from '../../src/harness/harness.ts';
import { runHarness } from '../../src/harness/run-harness.ts';
import type { Sandbox } from '../../src/sandbox.ts';

const task = { url: 'http://127.0.0.1:4000', key: 'k-1', model: 'org/model-7b', prompt: 'Say "{{key}}" \\ $HOME' };
const smallest: Harness = harness.parse({
  ...{ name: 'small', registry: 'npm', package: 'small', version: '1.0.0', program: 'bin/small', wire: 'chat', memoryMiB: 64 },
  ...{ args: ['{{prompt}}'], env: { URL: '{{url}}/v1' }, files: { 'a/b.json': '{"model":"{{model}}"}' } },
});

test('every harness that comes with Millrace is valid data, has a pinned version, and its own name', () => {
  for (const one of harnessCatalog) assert.deepEqual(harness.parse(one), one);
  assert.equal(new Set(harnessCatalog.map(({ name }) => name)).size, harnessCatalog.length);
});

test('the address, the key, the model and the prompt reach every one of them, and no placeholder is left', () => {
  for (const one of harnessCatalog) {
    const command = renderHarness(one, { ...task, prompt: 'Do it.' });
    const text = JSON.stringify(command);
    for (const value of [task.url, task.key, task.model, 'Do it.']) assert.ok(text.includes(value), `${one.name} does not get ${value}`);
    assert.doesNotMatch(text, /\{\{/, one.name);
    for (const file of Object.keys(command.files)) assert.match(file, /^\/tmp\/harness\//);
  }
});

test('a prompt is passed as it is, also with quotes, braces and dollar signs', () => {
  const { argv, stdin, env, files } = renderHarness({ ...smallest, stdin: '{{prompt}}' }, task);
  assert.deepEqual(argv, ['/opt/millrace/harness/bin/small', task.prompt]);
  assert.equal(stdin, task.prompt);
  assert.equal(env.URL, 'http://127.0.0.1:4000/v1');
  assert.deepEqual(files, { '/tmp/harness/a/b.json': '{"model":"org/model-7b"}' });
});

test('an unknown placeholder, and a model that would break a configuration file, are refused', () => {
  assert.throws(() => renderHarness({ ...smallest, args: ['{{task}}'] }, task), { code: 'sandbox-refused', message: /\{\{task\}\}/ });
  assert.throws(() => renderHarness(smallest, { ...task, model: 'a"b' }), { code: 'sandbox-refused' });
});

test('a program without the C library that it is linked with is refused with what to do, and an exit of its own is not', async () => {
  const run = (stderr: string, runtime: Harness['runtime'] = 'none') => {
    const exec = async () => ({ exitCode: 127, timedOut: false, stdout: Buffer.alloc(0), stderr: Buffer.from(stderr), cutBytes: 0 });
    const sandbox = { exec, writeFile: async () => {} } as unknown as Sandbox;
    return runHarness(sandbox, { ...smallest, runtime }, { ...task, timeoutMs: 1000 });
  };
  const missing = 'spawn /opt/millrace/harness/bin/small ENOENT\n';
  await assert.rejects(run(missing), { code: 'sandbox-refused', message: /small.*glibc/ });
  assert.equal((await run(missing, 'node')).exitCode, 127);
  assert.equal((await run('libstdc++.so.6: cannot open shared object')).kind, 'exited');
});
