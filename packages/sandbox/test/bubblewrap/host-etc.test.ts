// The /etc of bubblewrap sandboxes is a copy of what programs need, and never an old one.

import assert from 'node:assert/strict';
import { mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { FakeClock } from '@millrace/testkit';
import { makeTempFolder } from '@millrace/testkit/plain';
import { openHostEtc } from '../../src/bubblewrap/host-etc.ts';

async function makeEtc(path: string): Promise<string> {
  const etc = join(path, 'etc');
  await mkdir(join(etc, 'ssl/certs'), { recursive: true });
  await mkdir(join(etc, 'alternatives'));
  await mkdir(join(etc, 'ssl/private'));
  await symlink('/usr/bin/mawk', join(etc, 'alternatives/awk'));
  for (const name of ['passwd', 'shadow', 'services', 'ssl/certs/one.pem', 'ssl/private/key.pem'])
    await writeFile(join(etc, name), 'machine');
  await symlink('services', join(etc, 'protocols'));
  return etc;
}

test('the copy has what programs need, accounts of its own, and no key', async () => {
  await using temp = await makeTempFolder('etc');
  const folder = await openHostEtc(temp.path, await makeEtc(temp.path))();
  const found = (await readdir(folder, { recursive: true })).sort();
  const own = ['group', 'hosts', 'passwd', 'resolv.conf'];
  assert.deepEqual(
    found,
    [...own, 'alternatives', 'alternatives/awk', 'protocols', 'services', 'ssl', 'ssl/certs', 'ssl/certs/one.pem'].sort(),
  );
  assert.match(await readFile(join(folder, 'passwd'), 'utf8'), /^agent:/m);
  assert.equal(await readFile(join(folder, 'protocols'), 'utf8'), 'machine');
});

test('a change on the machine makes a new copy, and nothing else does', async () => {
  await using temp = await makeTempFolder('etc');
  const etc = await makeEtc(temp.path);
  const clock = new FakeClock();
  const look = openHostEtc(temp.path, etc, clock);
  const find = () => {
    clock.advance(1000);
    return look();
  };
  const first = await find();
  assert.equal(await find(), first);
  assert.equal(await openHostEtc(temp.path, etc)(), first);
  await symlink('/usr/bin/nvi', join(etc, 'alternatives/vi'));
  const second = await find();
  assert.deepEqual((await readdir(join(second, 'alternatives'))).sort(), ['awk', 'vi']);
  await writeFile(join(etc, 'services'), 'changed');
  assert.equal(await readFile(join(await find(), 'services'), 'utf8'), 'changed');
});
