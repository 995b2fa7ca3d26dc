// A real registry of images on this machine, Debian's docker-registry, and images pushed to it as Docker would push them.

import { execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { arch } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { findOnPath } from '@millrace/base/find-on-path';
import { chooseFreePort } from '@millrace/base/free-port';
import { makeTempFolder } from '../temp-folder.ts';

export interface Registry extends AsyncDisposable {
  /** Such as `127.0.0.1:41234`. */
  readonly host: string;
  /** Pushes a folder as an image of one layer. */
  push(name: string, tag: string, root: string): Promise<void>;
}

export function findRegistry(): string | undefined {
  return findOnPath(['docker-registry']);
}

export async function openRegistry(program: string): Promise<Registry> {
  const temp = await makeTempFolder('registry');
  const port = await chooseFreePort('127.0.0.1');
  const host = `127.0.0.1:${port}`;
  const config = `version: 0.1\nstorage:\n  filesystem:\n    rootdirectory: ${temp.path}/data\nhttp:\n  addr: ${host}\n`;
  await writeFile(join(temp.path, 'config.yml'), config);
  const child = spawn(program, ['serve', join(temp.path, 'config.yml')], { stdio: ['ignore', 'ignore', 'pipe'] });
  const close = async () => {
    if (child.exitCode === null && child.signalCode === null) {
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
    }
    await temp[Symbol.asyncDispose]();
  };
  try {
    // It stays open to the end: a registry that cannot write its log ends.
    await new Promise<void>((resolve, reject) => {
      child.once('error', reject);
      child.once('exit', () => reject(new Error(`${program} ended`)));
      child.stderr.setEncoding('utf8').on('data', (text: string) => text.includes('listening on') && resolve());
    });
    if (!(await fetch(`http://${host}/v2/`)).ok) throw new Error(`the registry on ${host} does not answer`);
  } catch (error) {
    await close();
    throw error;
  }
  return { host, push: (name, tag, root) => pushImage(`http://${host}/v2/${name}`, tag, root), [Symbol.asyncDispose]: close };
}

async function pushImage(url: string, tag: string, root: string): Promise<void> {
  await using temp = await makeTempFolder('layer');
  const file = join(temp.path, 'layer.tar');
  await promisify(execFile)('tar', ['--create', '--file', file, '--directory', root, '--owner=0', '--group=0', '.']);
  const layer = await readFile(file);
  const config = Buffer.from(
    JSON.stringify({
      architecture: arch() === 'x64' ? 'amd64' : arch(),
      os: 'linux',
      config: { Env: ['PATH=/usr/bin:/bin', 'FROM_REGISTRY=yes'] },
      rootfs: { type: 'layers', diff_ids: [digestOf(layer)] },
    }),
  );
  for (const blob of [layer, config]) await pushBlob(url, blob);
  const describe = (mediaType: string, blob: Buffer) => ({ mediaType, size: blob.length, digest: digestOf(blob) });
  const manifest = {
    schemaVersion: 2,
    mediaType: 'application/vnd.oci.image.manifest.v1+json',
    config: describe('application/vnd.oci.image.config.v1+json', config),
    layers: [describe('application/vnd.oci.image.layer.v1.tar', layer)],
  };
  const headers = { 'content-type': manifest.mediaType };
  const reply = await fetch(`${url}/manifests/${tag}`, { method: 'PUT', headers, body: JSON.stringify(manifest) });
  if (!reply.ok) throw new Error(`${url}/manifests/${tag}: ${reply.status} ${await reply.text()}`);
}

async function pushBlob(url: string, blob: Buffer): Promise<void> {
  const started = await fetch(`${url}/blobs/uploads/`, { method: 'POST' });
  const target = new URL(started.headers.get('location') ?? '', url);
  target.searchParams.set('digest', digestOf(blob));
  const headers = { 'content-type': 'application/octet-stream' };
  const reply = await fetch(target, { method: 'PUT', headers, body: new Uint8Array(blob) });
  if (!reply.ok) throw new Error(`${target}: ${reply.status} ${await reply.text()}`);
}

function digestOf(blob: Buffer): string {
  return `sha256:${createHash('sha256').update(blob).digest('hex')}`;
}
