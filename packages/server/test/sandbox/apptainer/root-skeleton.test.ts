// Which images a root worker's kernel stacks sandboxes on by itself.

import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { isStackable } from '../../../src/sandbox/apptainer/root-skeleton.ts';

let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'stackable-'));
});
after(() => rm(folder, { recursive: true }));

async function makeImage(name: string): Promise<string> {
  const image = join(folder, name);
  for (const part of ['dev', 'etc', 'proc', 'tmp', 'var/tmp', 'usr']) await mkdir(join(image, part), { recursive: true });
  return image;
}

test('a directory is, whether or not it has the places that the skeleton has', async () => {
  const image = await makeImage('usual');
  assert.equal(await isStackable(image), true);
  await mkdir(join(image, 'opt/millrace'), { recursive: true });
  assert.equal(await isStackable(image), true);
  await rm(join(image, 'proc'), { recursive: true });
  assert.equal(await isStackable(image), true);
});

test('a directory with a link or a file in the place of a folder is not', async () => {
  const image = await makeImage('link');
  await symlink('usr', join(image, 'run'));
  assert.equal(await isStackable(image), false);
  const other = await makeImage('file');
  await writeFile(join(other, 'workspace'), '');
  assert.equal(await isStackable(other), false);
});

test('a directory whose resolv.conf leads elsewhere is not: nothing could be mounted on it', async () => {
  const image = await makeImage('resolv');
  await symlink('../run/resolve/stub.conf', join(image, 'etc/resolv.conf'));
  assert.equal(await isStackable(image), false);
});

test('neither a file is, nor a directory whose path an overlay would take for several', async () => {
  const file = join(folder, 'image.sif');
  await writeFile(file, '');
  assert.equal(await isStackable(file), false);
  assert.equal(await isStackable(await makeImage('a:b')), false);
});
