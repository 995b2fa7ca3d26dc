// The checks of the doctor, each by what it is shown, and the whole with the options of `serve`.

import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { findApptainer } from '@millrace/sandbox';
import { type Check, checkModel, checkPort, checkRunFolder, readConfig, runStartChecks } from '@millrace/server';
import { makeTempFolder, openFakeBackend, qwen3Folder } from '@millrace/testkit';
import { writeTinyModel } from '../../src/author/local/tiny-model.ts';
import { renderChecks } from '../../src/operate/doctor.ts';
import { checkAgentUser, checkLimits, checkMemory, checkNode, checkOpenFiles } from '../../src/operate/doctor-checks.ts';
import { millrace, openIo } from '../fake-io.ts';

test('an old Node.js, a small limit of open files and little memory are reported', () => {
  assert.deepEqual([checkNode('24.21.0').level, checkNode('20.20.2').level], ['ok', 'fail']);
  const few = checkOpenFiles('Max open files            1024                 1048576              files');
  assert.ok(few.level === 'warn' && few.remedy === 'ulimit -n 65536');
  assert.equal(checkOpenFiles('Max open files            unlimited            unlimited            files').level, 'ok');
  assert.equal(checkOpenFiles(undefined).level, 'warn');
  assert.deepEqual([checkMemory(1 << 30, 1 << 29).level, checkMemory(16 * 2 ** 30, 1).level], ['warn', 'ok']);
});

test('limits that are not enforced for a whole sandbox are named, and so is an agent that is root', () => {
  const none = checkLimits([], false);
  assert.ok(none.level === 'warn' && /of a sandbox by a check every second, of socket and pipe buffers not at all/.test(none.seen));
  const levels = (['bubblewrap', 'apptainer'] as const).map((driver) =>
    [true, false].map((isRoot) => checkAgentUser(driver, isRoot).level),
  );
  assert.deepEqual(levels, [
    ['ok', 'ok'],
    ['warn', 'ok'],
  ]);
});

test('a run folder whose sockets would have too long a path fails', async () => {
  assert.equal((await checkRunFolder(join(tmpdir(), `run-${process.pid}`))).level, 'ok');
  const { level, seen } = await checkRunFolder(`/tmp/${'long/'.repeat(20)}`);
  assert.equal(level, 'fail');
  assert.match(seen, /too long: the path of a socket in it would have 1\d\d bytes, and 107 are allowed/);
});

test('a port that is in use fails, because serve would', async () => {
  const server = createServer((socket) => socket.destroy());
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  assert.deepEqual((await checkPort('127.0.0.1', port)).level, 'fail');
  await new Promise((done) => server.close(done));
  assert.equal((await checkPort('127.0.0.1', port)).level, 'ok');
  const foreign = await checkPort('203.0.113.1', 0);
  assert.match(foreign.level === 'fail' ? foreign.remedy : '', /this machine has no address 203\.0\.113\.1: --host 127\.0\.0\.1/);
});

const main = join(import.meta.dirname, '../../src/main.ts');
const checkTokenizer = async (tokenizer: string) => (await checkModel(readConfig(undefined, { 'model.tokenizer': tokenizer }))).check;

test('a tokenizer folder without its files, or with broken ones, fails by the name of the file', async () => {
  await using folder = await makeTempFolder('doctor');
  assert.match((await checkTokenizer('/nope')).seen, /there is no folder \/nope/);
  const file = await checkTokenizer('/etc/passwd');
  assert.match(file.level === 'fail' ? `${file.seen}: ${file.remedy}` : '', /passwd is a file: pass its folder: --tokenizer \/etc/);
  assert.match((await checkTokenizer(folder.path)).seen, /no tokenizer\.json in /);
  await writeFile(join(folder.path, 'tokenizer.json'), '{}');
  await writeFile(join(folder.path, 'tokenizer_config.json'), 'nonsense');
  assert.match((await checkTokenizer(folder.path)).seen, /tokenizer_config\.json is broken: /);
  await writeFile(join(folder.path, 'tokenizer_config.json'), '{}');
  assert.match((await checkTokenizer(folder.path)).seen, /tokenizer\.json is broken: .*model/);
  await writeTinyModel(folder.path);
  assert.equal((await checkTokenizer(folder.path)).level, 'ok');
});

test('a folder with only tekken.json may start, as `model check` may read it', async () => {
  await using folder = await makeTempFolder('doctor');
  const vocab = Array.from({ length: 256 }, (_, rank) => ({ rank, token_bytes: Buffer.of(rank).toString('base64') }));
  const config = { pattern: '\\S+|\\s+', default_vocab_size: 276, default_num_special_tokens: 20 };
  await writeFile(join(folder.path, 'tekken.json'), JSON.stringify({ config, vocab }));
  const checks = await runStartChecks(readConfig(undefined, { 'model.tokenizer': folder.path, 'http.port': 0 }), { workers: 1 });
  assert.deepEqual(
    checks.find(({ name }) => name === 'tokenizer'),
    { name: 'tokenizer', level: 'ok', seen: folder.path },
  );
});

test('a tokenizer that is an address must answer', async () => {
  const fake = await openFakeBackend({ policy: () => ({ text: '' }), tokenizer: 'vllm-with-info' });
  const { url } = fake;
  assert.equal((await checkTokenizer(url)).level, 'ok');
  await fake[Symbol.asyncDispose]();
  assert.match((await checkTokenizer(url)).seen, /does not answer/);
});

test('a backend is asked what a join would ask it, and its tokenizer is compared', async () => {
  await using folder = await makeTempFolder('doctor');
  await writeTinyModel(folder.path);
  await using fake = await openFakeBackend({ policy: () => ({ text: '' }), model: 'm', maxModelLen: 2048 });
  const look = async (...options: string[]) => {
    const { out } = await millrace(['doctor', '--json', '--port', '0', ...options], openIo());
    return (JSON.parse(out) as Check[]).find(({ name }) => name === 'backend') ?? assert.fail(out);
  };
  const same = await look('--backend', `${fake.url}/v1`, '--tokenizer', qwen3Folder());
  assert.equal(same.level, 'ok');
  assert.match(same.seen, /: engine vllm 0\.32\.0; model m; context 2,048 tokens; .*; tokenizer the service's$/);
  const other = await look('--backend', fake.url, '--tokenizer', folder.path);
  assert.equal(other.level, 'warn');
  assert.match(other.seen, /tokenizer not the service's .* as \[151644, 872, /);
  const gone = await look('--backend', 'http://127.0.0.1:9');
  assert.equal(gone.level, 'warn');
  assert.match(gone.seen, /127\.0\.0\.1:9/);
});

test('a remedy stands on its own line, unbroken, and the last line is the verdict', () => {
  const remedy = `sudo ${'x'.repeat(120)}`;
  const text = renderChecks([{ name: 'thing', level: 'fail', seen: 'is not there', remedy }], { columns: 60, color: false });
  assert.equal(text, `✖ thing  is not there\n         → ${remedy}\n\nNot ready: millrace serve would not start. Fix thing.\n`);
});

test('with the options of serve, what serve would refuse fails, each with its fix', async () => {
  const options = ['--scenarios', 'nope.ts', '--data', '/proc/nothing', '--tokenizer', '/nope', '--host', '0.0.0.0'];
  const { code, out } = await millrace(['doctor', '--json', '--port', '0', ...options], openIo());
  assert.equal(code, 1);
  const checks: Check[] = JSON.parse(out);
  const failed = checks.filter((check) => check.level === 'fail').map(({ name }) => name);
  for (const name of ['scenarios', 'store folder', 'tokenizer', 'access']) assert.ok(failed.includes(name), `${name} in ${failed}`);
  for (const check of checks) if (check.level !== 'ok') assert.match(check.remedy, /\w/, check.name);
});

const asUser = ['--reuid', '54321', '--regid', '54321', '--clear-groups'];
const skip = spawnSync('setpriv', [...asUser, 'test', '-r', main]).status === 0 ? false : 'not root, or no other user can read this clone';
test('doctor works for a user without an account, and reports that Apptainer refuses such users', { skip }, async () => {
  const command = [...asUser, process.execPath, main, 'doctor', '--json', '--port', '0'];
  const env = { PATH: process.env.PATH };
  const { stdout } = await promisify(execFile)('setpriv', command, { env, cwd: tmpdir() }).catch((error) => error);
  const checks: Check[] = JSON.parse(stdout);
  assert.equal(checks.find(({ name }) => name === 'bubblewrap')?.level, 'ok');
  const apptainer = checks.find(({ name }) => name === 'apptainer');
  if (findApptainer() !== undefined) assert.ok(apptainer?.level === 'warn' && /\/etc\/passwd/.test(apptainer.remedy), apptainer?.seen);
});

test('the whole examination names everything that it looked at', async () => {
  await using folder = await makeTempFolder('doctor');
  await mkdir(join(folder.path, 'model'));
  await writeTinyModel(join(folder.path, 'model'));
  const argv = ['doctor', '--json', '--port', '0', '--tokenizer', join(folder.path, 'model')];
  const { out } = await millrace(argv, openIo());
  const names = (JSON.parse(out) as Check[]).map((check) => check.name);
  assert.deepEqual(names, [
    ...['Node.js', 'bash', 'apptainer', 'memory', 'cores', 'open files', 'sandbox limits', 'agents'],
    ...['access', 'port', 'store folder', 'free disk', 'scenarios', 'bubblewrap', 'run folder', 'executor', 'tokenizer'],
  ]);
});
