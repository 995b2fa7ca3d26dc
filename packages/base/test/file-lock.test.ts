// File locks between processes: who holds one, who waits, and that it ends with its holder.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { makeTempFolder } from '@millrace/testkit/plain';
import { openFileLock, tryFileLock } from '../src/file-lock.ts';

const folder = await makeTempFolder('lock');
after(() => folder[Symbol.asyncDispose]());

test('shared locks coexist, and an exclusive one waits for all of them', async () => {
  const path = join(folder.path, 'shared');
  const first = await openFileLock(path, { shared: true });
  const second = await openFileLock(path, { shared: true });
  assert.equal(await tryFileLock(path), undefined);
  const waiting = openFileLock(path);
  await first[Symbol.asyncDispose]();
  await second[Symbol.asyncDispose]();
  await using _lock = await waiting;
  assert.equal(await tryFileLock(path), undefined);
});

test('waiting for a lock can be aborted', async () => {
  const path = join(folder.path, 'off');
  await using _held = await openFileLock(path);
  const cancel = new AbortController();
  const waiting = openFileLock(path, { signal: cancel.signal });
  cancel.abort(new Error('no longer wanted'));
  await assert.rejects(waiting, /no longer wanted/);
});

test('a killed process releases its lock', async () => {
  const path = join(folder.path, 'killed');
  const module = JSON.stringify(import.meta.resolve('../src/file-lock.ts'));
  const program = `import { openFileLock } from ${module}; await openFileLock(${JSON.stringify(path)}); console.log('held'); setInterval(() => {}, 1000);`;
  const owner = spawn(process.execPath, ['--input-type=module', '-e', program], { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(owner.stdout, 'data');
  assert.equal(await tryFileLock(path), undefined);
  owner.kill('SIGKILL');
  await (await openFileLock(path))[Symbol.asyncDispose]();
});
