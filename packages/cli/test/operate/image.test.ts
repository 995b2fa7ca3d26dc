// `millrace image` with a real archive, from making to removing.

import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { probeApptainer } from '@millrace/sandbox';
import { makeTempFolder, writeDockerArchive } from '@millrace/testkit/plain';
import { millrace, openIo } from '../fake-io.ts';

const probe = await probeApptainer();
const skip = probe.ok ? false : `${probe.reason}; try: ${probe.remedy}`;

test('an image is built, listed and removed', { skip }, async () => {
  await using temporary = await makeTempFolder('image');
  const folder = temporary.path;
  const config = join(folder, 'config.json');
  await writeFile(config, JSON.stringify({ sandbox: { images: join(folder, 'images') } }));
  await mkdir(join(folder, 'root'));
  await writeFile(join(folder, 'root/content'), 'here');
  await writeDockerArchive(join(folder, 'small.tar'), join(folder, 'root'));
  const name = `docker-archive:${join(folder, 'small.tar')}`;
  const image = (...words: string[]) => millrace(['image', ...words, '--config', config], openIo());

  const built = await image('build', name);
  assert.equal(built.code, 0, built.err);
  assert.match(built.out, new RegExp(`^${folder}/images/[0-9a-f]{16}/image\n$`));
  assert.match((await image('ls')).out, new RegExp(`^[0-9a-f]{16}  .*B +${name}\n$`));
  assert.equal((await image('rm', name)).code, 0);
  assert.deepEqual(JSON.parse((await image('ls', '--json')).out), []);
  assert.match((await image('rm', name)).err, /there is no image/);
});

test('an unknown action and a missing image are usage errors', async () => {
  const { code, err } = await millrace(['image', 'shrink'], openIo());
  assert.deepEqual([code, err.includes('pull, build, ls or rm, not shrink')], [2, true]);
  assert.equal((await millrace(['image', 'pull'], openIo())).code, 2);
});
