// Which images can be stacked by the kernel before Apptainer starts.

import assert from 'node:assert/strict';
import { mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { makeTempFolder, type TempFolder } from '@millrace/testkit/plain';
import { isStackable } from '../../src/apptainer/root-skeleton.ts';

let folder: TempFolder;
before(async () => {
  folder = await makeTempFolder('stackable');
});
after(() => folder[Symbol.asyncDispose]());

async function makeImage(name: string): Promise<string> {
  const image = join(folder.path, name);
  for (const part of ['dev', 'etc', 'proc', 'tmp', 'var/tmp', 'usr']) await mkdir(join(image, part), { recursive: true });
  return image;
}

test('a directory can be stacked, with or without the folders of the skeleton', async () => {
  const image = await makeImage('usual');
  assert.equal(await isStackable(image), true);
  await mkdir(join(image, 'opt/millrace'), { recursive: true });
  assert.equal(await isStackable(image), true);
  await rm(join(image, 'proc'), { recursive: true });
  assert.equal(await isStackable(image), true);
});

test('a directory with a link or a file in place of a folder cannot be stacked', async () => {
  const image = await makeImage('link');
  await symlink('usr', join(image, 'run'));
  assert.equal(await isStackable(image), false);
  const other = await makeImage('file');
  await writeFile(join(other, 'workspace'), '');
  assert.equal(await isStackable(other), false);
});

test('a directory whose resolv.conf is a link cannot be stacked: nothing can be mounted on it', async () => {
  const image = await makeImage('resolv');
  await symlink('../run/resolve/stub.conf', join(image, 'etc/resolv.conf'));
  assert.equal(await isStackable(image), false);
});

test('a file cannot be stacked, nor a directory whose path contains a separator of mount options', async () => {
  const file = join(folder.path, 'image.sif');
  await writeFile(file, '');
  assert.equal(await isStackable(file), false);
  assert.equal(await isStackable(await makeImage('a:b')), false);
});
