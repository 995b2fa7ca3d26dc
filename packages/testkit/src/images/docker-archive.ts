// Writes a Docker archive from a directory, in the format of `docker save`: one layer and a configuration. Docker is not needed.

import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { arch } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { makeTempFolder } from '../temp-folder.ts';

export async function writeDockerArchive(file: string, root: string, env: readonly string[] = []): Promise<void> {
  const run = promisify(execFile);
  await using temp = await makeTempFolder('archive');
  const folder = temp.path;
  await run('tar', ['--create', '--file', join(folder, 'layer.tar'), '--directory', root, '--owner=0', '--group=0', '.']);
  const layer = createHash('sha256')
    .update(await readFile(join(folder, 'layer.tar')))
    .digest('hex');
  const config = {
    architecture: arch() === 'x64' ? 'amd64' : arch(),
    os: 'linux',
    config: { Env: env },
    rootfs: { type: 'layers', diff_ids: [`sha256:${layer}`] },
  };
  await writeFile(join(folder, 'config.json'), JSON.stringify(config));
  const manifest = [{ Config: 'config.json', RepoTags: ['tiny:latest'], Layers: ['layer.tar'] }];
  await writeFile(join(folder, 'manifest.json'), JSON.stringify(manifest));
  await run('tar', ['--create', '--file', file, '--directory', folder, 'manifest.json', 'config.json', 'layer.tar']);
}
