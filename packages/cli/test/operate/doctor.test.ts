// The checks of the doctor, each by what it is shown.

import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { openFakeBackend } from '@millrace/testkit';
import { renderChecks } from '../../src/operate/doctor.ts';
import { checkMemory, checkNode, checkOpenFiles, checkPort, checkRunFolder, checkTokenizer } from '../../src/operate/doctor-checks.ts';
import { millrace, openIo } from '../fake-io.ts';

test('an old Node.js, a small limit of files and little memory are reported', () => {
  assert.deepEqual([checkNode('24.21.0').level, checkNode('20.20.2').level], ['ok', 'fail']);
  assert.equal(checkOpenFiles('Max open files            1024                 1048576              files').remedy, 'ulimit -n 65536');
  assert.equal(checkOpenFiles('Max open files            unlimited            unlimited            files').level, 'ok');
  assert.equal(checkOpenFiles(undefined).level, 'warn');
  assert.deepEqual([checkMemory(1 << 30, 1 << 29).level, checkMemory(16 * 2 ** 30, 1).level], ['warn', 'ok']);
});

test('a run folder whose sockets would have too long a path fails', async () => {
  assert.equal((await checkRunFolder(join(tmpdir(), 'x'))).level, 'ok');
  const { level, seen } = await checkRunFolder(`/tmp/${'long/'.repeat(20)}`);
  assert.equal(level, 'fail');
  assert.match(seen, /too long: a socket in it would have 1\d\d bytes of 107/);
});

test('a port that is taken is a warning, for it may be the service itself', async () => {
  const server = createServer();
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  assert.match((await checkPort('127.0.0.1', port)).seen, /is taken/);
  await new Promise((done) => server.close(done));
  assert.equal((await checkPort('127.0.0.1', port)).level, 'ok');
  assert.equal((await checkPort('203.0.113.1', 0)).level, 'fail');
});

test('a tokenizer folder without its files, or with broken ones, fails by the name of the file', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'doctor-'));
  try {
    assert.match((await checkTokenizer(folder)).seen, /tokenizer\.json cannot be read/);
    await writeFile(join(folder, 'tokenizer.json'), '{}');
    await writeFile(join(folder, 'tokenizer_config.json'), 'nonsense');
    assert.match((await checkTokenizer(folder)).seen, /tokenizer_config\.json is not JSON/);
    await writeFile(join(folder, 'tokenizer_config.json'), '{}');
    assert.equal((await checkTokenizer(folder)).level, 'ok');
  } finally {
    await rm(folder, { recursive: true });
  }
});

test('a tokenizer that is an address must answer', async () => {
  const fake = await openFakeBackend({ policy: () => ({ text: '' }) });
  const { url } = fake;
  assert.equal((await checkTokenizer(url)).level, 'ok');
  await fake[Symbol.asyncDispose]();
  assert.match((await checkTokenizer(url)).seen, /cannot be reached/);
});

test('a remedy has its own line, unbroken', () => {
  const remedy = `sudo ${'x'.repeat(120)}`;
  const text = renderChecks([{ name: 'thing', level: 'fail', seen: 'is not there', remedy }], { columns: 60, color: false });
  assert.equal(text, `✘ fail  thing  is not there\n               → ${remedy}\n\nMillrace cannot work here yet: thing.\n`);
});

test('the whole examination names every thing it looked at, as text and as JSON', async () => {
  const { out } = await millrace(['doctor', '--json'], openIo());
  const checks: { name: string }[] = JSON.parse(out);
  const names = checks.map((check) => check.name);
  assert.deepEqual(names, [
    'Node.js',
    'bubblewrap',
    'bash',
    'tmux',
    'apptainer',
    'store folder',
    'free disk',
    'run folder',
    'memory',
    'cores',
    'open files',
    'sandbox limits',
    'port',
  ]);
});
