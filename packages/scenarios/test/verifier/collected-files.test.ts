// What leaves the agent's sandbox is files, folders and links that stay inside. A check that reads them reads what the agent wrote.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { CheckBed } from './bed.ts';

let bed: CheckBed;
before(async () => {
  bed = await CheckBed.open();
});
after(() => bed[Symbol.asyncDispose]());

const forgeries: readonly (readonly [name: string, agent: string, check: string])[] = [
  ["a link to the command line of the check's grep", 'ln -s /proc/self/cmdline result.txt', 'grep -q "hello world" result.txt'],
  [
    "a link to the command line of the check's counting grep",
    'ln -s /proc/self/cmdline log.txt',
    'n=$(grep -c ERROR log.txt); [ "$n" = 1 ]',
  ],
  [
    'a link to the command line of a Python check',
    'ln -s /proc/self/cmdline out',
    `python3 -c 'import sys; sys.exit("hello" not in open("out").read())'`,
  ],
  ['a link to a hidden file', 'ln -s /opt/expected result.txt', 'cmp -s result.txt /tmp/expected || cmp -s result.txt /opt/expected'],
  ['a link to a hidden file in /tmp', 'ln -s /tmp/expected result.txt', 'cmp -s result.txt /tmp/expected'],
  ['a link through the folder above', 'ln -s ../tmp/expected result.txt', 'cmp -s result.txt /tmp/expected'],
  ['a link through another link', 'mkdir a; ln -s / a/root; ln -s a/root/tmp/expected result.txt', 'cmp -s result.txt /tmp/expected'],
  ['a link to a folder with the hidden file', 'ln -s /tmp out', 'cmp -s out/expected /tmp/expected'],
  ['a link to the standard input of the check', 'ln -s /dev/stdin result.txt', 'echo "hello world" | grep -q "hello world" result.txt'],
  ['a link to a descriptor', 'ln -s /proc/self/fd/0 result.txt', 'grep -q "hello world" result.txt <<< "hello world"'],
  ['a link to the environment of the check', 'ln -s /proc/self/environ result.txt', 'WANT="hello world" grep -q "hello world" result.txt'],
];
for (const [name, agent, check] of forgeries) {
  test(`no reward for ${name}, and the details name it`, async () => {
    const { reward, details } = await bed.judge({ agent, check, hidden: { '/tmp/expected': 'secret' } });
    assert.equal(reward, 0, JSON.stringify(details));
    assert.match(String(details?.skipped), /a link to .*outside/);
  });
}

test('links inside the folder, hard links and virtual environments work in the check', async () => {
  const agent = `mkdir -p node_modules/.bin node_modules/tool deep/er; echo 'echo ran' > node_modules/tool/run.sh
ln -s ../tool/run.sh node_modules/.bin/tool; echo text > file; ln file hard; ln -s /workspace/file deep/er/absolute; ln -s . self
mkdir -p venv/bin; ln -s /usr/bin/python3 venv/bin/python3; ln -s python3 venv/bin/python`;
  const check = `[ "$(judged bash node_modules/.bin/tool)" = ran ] && [ "$(cat hard)" = text ] && [ "$(cat deep/er/absolute)" = text ] || exit 1
[ "$(cat self/self/file)" = text ] && [ "$(judged venv/bin/python -c 'print(2)')" = 2 ]`;
  const { reward, details } = await bed.judge({ agent, check });
  assert.equal(reward, 1, JSON.stringify(details));
  assert.equal(details?.skipped, undefined);
});

test('a file is not read through a link that leaves the workspace or leads to the kernel', async () => {
  await using sandbox = await bed.open();
  const agent = `ln -s /proc/self/cmdline a; ln -s /etc/passwd b; ln -s /tmp c; echo x > /tmp/d; ln -s /dev/stdin e; mkdir f; echo in > f/g; ln -s f/g h
ln -s /proc/self/environ /tmp/i; mkfifo j; truncate -s 4T k; ln -s f l; ln -s /proc/self/cwd/f/g m`;
  await sandbox.runShell(agent, { timeoutMs: 10_000 });
  const read = (path: string) => sandbox.readFile(path, { maxBytes: 1 << 20 });
  for (const path of ['a', 'b', 'c/d', 'e', '/tmp/i', 'j', '/workspace/../tmp/i'])
    await assert.rejects(read(path), { code: 'not-found' }, path);
  await assert.rejects(read('k'), { code: 'artifact-too-large' });
  for (const path of ['h', 'l/g', '/workspace/f/g']) assert.equal(String(await read(path)), 'in\n', path);
  assert.equal(String(await read('/tmp/d')), 'x\n');
  assert.equal(String(await sandbox.readFile('c/d', { maxBytes: 100, anyLink: true })), 'x\n');
});

test('a folder is not packed through a link that leaves the workspace', async () => {
  await using sandbox = await bed.open();
  await sandbox.runShell('mkdir -p /tmp/x/y; echo secret > /tmp/x/y/z; ln -s /tmp/x x; ln -s /proc/self p', { timeoutMs: 10_000 });
  for (const path of ['x', 'x/y', 'p', 'p/fd'])
    await assert.rejects(sandbox.readFolder(path, { maxBytes: 1 << 20 }), { code: 'not-found' }, path);
});

test('a file that keeps changing between a link and a file never has the content of the link', async () => {
  await using sandbox = await bed.open();
  const swap =
    'mkdir d e; echo own > d/file; echo secret > /tmp/file; (while :; do ln -sfn /tmp r; ln -sfn d r; mv d d2; ln -s /tmp d; rm d; mv d2 d; done) >/dev/null 2>&1 &';
  await sandbox.runShell(swap, { timeoutMs: 10_000 });
  for (let round = 0; round < 50; round += 1) {
    const seen = await sandbox.readFile('r/file', { maxBytes: 100 }).catch(() => Buffer.from('own\n'));
    assert.equal(String(seen), 'own\n');
    const { archive } = await sandbox.readFolder('/workspace', { maxBytes: 1 << 20 });
    assert.ok(!archive.includes('secret'));
  }
});
