// Images from a real registry: pulled by name, and as the base of a Dockerfile whose own registry cannot be reached.

import assert from 'node:assert/strict';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { ImageCache, probeApptainer } from '@millrace/sandbox';
import { findRegistry, makeTempFolder, makeTinyImage, openRegistry } from '@millrace/testkit';

const probe = await probeApptainer();
const program = findRegistry();
const skip = !probe.ok ? `${probe.reason}; try: ${probe.remedy}` : program === undefined ? 'docker-registry is not in PATH' : false;

test('FROM takes an image of a registry on this machine, also in the place of another name', { skip, timeout: 300_000 }, async () => {
  await using temp = await makeTempFolder('rg');
  await makeTinyImage(join(temp.path, 'tiny'));
  await using registry = await openRegistry(program ?? '');
  await registry.push('library/debian', '12-slim', join(temp.path, 'tiny'));
  const names = { 'debian:*': `docker://${registry.host}/library/debian:*` };
  const cache = new ImageCache({ folder: join(temp.path, 'images'), maxBytes: 2 ** 32, names });
  await mkdir(join(temp.path, 'task'));
  await writeFile(join(temp.path, 'task/Dockerfile'), 'FROM debian:12-slim\nENV MORE="$FROM_REGISTRY!"\nRUN echo "$MORE" > /built\n');
  await using image = await cache.open(join(temp.path, 'task/Dockerfile'));
  assert.equal(await readFile(join(image.path, 'built'), 'utf8'), 'yes!\n');
  assert.deepEqual((await cache.list()).map(({ source }) => source).sort(), [
    join(temp.path, 'task/Dockerfile'),
    `docker://${registry.host}/library/debian:12-slim`,
  ]);
  await assert.rejects(cache.open(`docker://${registry.host}/library/debian:none`), /the registry has no such image or tag/);
});
