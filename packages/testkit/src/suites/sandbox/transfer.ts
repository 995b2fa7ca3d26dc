// The sandbox suite: upload and download. Files and folders arrive complete, and no archive can harm the machine.

import assert from 'node:assert/strict';
import { mkdir, readdir, readFile, readlink, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { makeTempFolder, type TempFolder } from '../../temp-folder.ts';
import { type SuiteContext, timeoutMs } from './context.ts';

export function defineTransfer({ sandbox, driver }: SuiteContext): void {
  let temp: TempFolder;
  let base: string;
  before(async () => {
    temp = await makeTempFolder('transfer');
    base = temp.path;
  });
  after(() => temp[Symbol.asyncDispose]());
  const shell = async (command: string) => (await sandbox().runShell(command, { timeoutMs })).output;

  test('a folder is unchanged after upload and download', async () => {
    const from = join(base, 'tree');
    await mkdir(join(from, 'a/b'), { recursive: true });
    await writeFile(join(from, 'a/b/run'), 'echo ran', { mode: 0o755 });
    await writeFile(join(from, 'a/empty'), '');
    await symlink('b/run', join(from, 'a/link'));
    await sandbox().upload(from, '/workspace/sent/tree');
    assert.equal(
      await shell('bash sent/tree/a/link; stat -c %a sent/tree/a/b/run; ls /tmp/tmp.*'),
      "ran\n755\nls: cannot access '/tmp/tmp.*': No such file or directory\n",
    );
    const to = join(base, 'back/tree');
    assert.deepEqual(await sandbox().download('sent/tree', to), { skipped: [] });
    assert.deepEqual((await readdir(to, { recursive: true })).sort(), ['a', 'a/b', 'a/b/run', 'a/empty', 'a/link']);
    assert.equal(await readlink(join(to, 'a/link')), 'b/run');
    assert.equal((await stat(join(to, 'a/b/run'))).mode & 0o777, 0o755);
  });

  test('a large file can be uploaded and downloaded under any name', async () => {
    const bytes = Buffer.alloc((20 << 20) + 17, 'millrace');
    await writeFile(join(base, 'large'), bytes);
    await sandbox().upload(join(base, 'large'), 'sent/-odd name');
    await sandbox().download('sent/-odd name', join(base, 'large again'));
    assert.ok((await readFile(join(base, 'large again'))).equals(bytes));
  });

  test('a missing source, an existing target and a transfer over the limit are refused, and nothing is left behind', async () => {
    await using fresh = await driver().open({});
    await fresh.runShell('head -c 2000000 /dev/zero > big; truncate -s 4T hole', { timeoutMs });
    await assert.rejects(fresh.download('/no/such', join(base, 'none')), { code: 'not-found' });
    await assert.rejects(fresh.download('big', base), { code: 'conflict' });
    await assert.rejects(fresh.download('big', join(base, 'big'), { maxBytes: 1000 }), { code: 'artifact-too-large' });
    await assert.rejects(fresh.upload(join(base, 'large'), 'x', { maxBytes: 1000 }), { code: 'artifact-too-large' });
    await assert.rejects(fresh.upload(join(base, 'large'), '/proc/x'), { code: 'sandbox-refused' });
    await assert.rejects(fresh.download('hole', join(base, 'hole'), { timeoutMs: 300 }));
    assert.deepEqual(
      (await readdir(base)).filter((name) => /none|big|hole|part/.test(name)),
      [],
    );
  });

  test('links out of the folder, pipes and sockets are not downloaded, and are listed', async () => {
    await shell('mkdir bad; cd bad; ln -s /etc/passwd out; ln -s ../.. up; mkfifo pipe; echo x > good; cd ..');
    const { skipped } = await sandbox().download('bad', join(base, 'bad'));
    assert.deepEqual([...skipped].sort(), ['out (link to /etc/passwd, outside)', 'pipe (pipe)', 'up (link to ../.., outside)']);
    assert.deepEqual(await readdir(join(base, 'bad')), ['good']);
  });

  test('a malicious archive is refused, and files of the machine are unchanged', async () => {
    await using fresh = await driver().open({ env: { PATH: '/workspace/bin:/usr/bin:/bin' } });
    const evil = ['#!/bin/sh', 'mkdir -p /tmp/e/d; cd /tmp/e/d; echo harm > ../harm; exec /usr/bin/tar -c -P -f "$3" ../harm'].join('\n');
    await fresh.writeFile('bin/tar', evil, { mode: 0o755 });
    await fresh.runShell('mkdir work', { timeoutMs });
    await assert.rejects(fresh.download('work', join(base, 'deep/work')), { code: 'sandbox-refused', message: /\.\.\/harm/ });
    assert.deepEqual(await readdir(join(base, 'deep')), []);
  });

  test('a file that becomes a link during its download is refused', async () => {
    await using fresh = await driver().open({ env: { PATH: '/workspace/bin:/usr/bin:/bin' } });
    const evil = ['#!/bin/sh', 'mkdir -p /tmp/e; cd /tmp/e; ln -s sibling answer; exec /usr/bin/tar -c -f "$4" answer'].join('\n');
    await fresh.writeFile('bin/tar', evil, { mode: 0o755 });
    await fresh.writeFile('answer', 'mine');
    await mkdir(join(base, 'swap'));
    await writeFile(join(base, 'swap/sibling'), 'a file of the machine');
    await assert.rejects(fresh.download('answer', join(base, 'swap/answer')), { code: 'sandbox-refused', message: /regular file/ });
    assert.deepEqual(await readdir(join(base, 'swap')), ['sibling']);
  });

  test('a cancelled transfer throws the reason and leaves nothing behind', async () => {
    const cancel = new AbortController();
    const running = sandbox().download('sent', join(base, 'cancelled'), { signal: cancel.signal });
    setImmediate(() => cancel.abort(new Error('no longer wanted')));
    await assert.rejects(running, /no longer wanted/);
    assert.deepEqual(
      (await readdir(base)).filter((name) => name.startsWith('cancelled')),
      [],
    );
  });
}
