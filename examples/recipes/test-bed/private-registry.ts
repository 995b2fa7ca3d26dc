// A registry of one image that answers only with a login, as private ones do. What reads it is Apptainer's own client.

import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { needProgram } from '../../../test/package/run-program.ts';

const manifestType = 'application/vnd.oci.image.manifest.v1+json';

export interface PrivateRegistry extends AsyncDisposable {
  /** Such as `127.0.0.1:41234`. */
  readonly host: string;
}

/** Serves the folder `root` as `team/tools:1`. */
export async function openPrivateRegistry(login: string, root: string, temp: string): Promise<PrivateRegistry> {
  await needProgram(['tar', '-cf', join(temp, 'layer.tar'), '-C', root, '--owner=0', '--group=0', '.'], { cwd: temp });
  const layer = await readFile(join(temp, 'layer.tar'));
  const architecture = process.arch === 'x64' ? 'amd64' : process.arch;
  const config = Buffer.from(
    JSON.stringify({
      architecture,
      os: 'linux',
      config: { Env: ['PATH=/usr/bin:/bin'] },
      rootfs: { type: 'layers', diff_ids: [digestOf(layer)] },
    }),
  );
  const describe = (mediaType: string, blob: Buffer) => ({ mediaType, size: blob.length, digest: digestOf(blob) });
  const manifest = Buffer.from(
    JSON.stringify({
      schemaVersion: 2,
      mediaType: manifestType,
      config: describe('application/vnd.oci.image.config.v1+json', config),
      layers: [describe('application/vnd.oci.image.layer.v1.tar', layer)],
    }),
  );
  const blobs = new Map([layer, config, manifest].map((blob) => [digestOf(blob), blob]));
  const wanted = `Basic ${Buffer.from(login).toString('base64')}`;
  const server = createServer(({ url = '', headers, method }, response) => {
    if (headers.authorization !== wanted) return void response.writeHead(401, { 'www-authenticate': 'Basic realm="team"' }).end();
    if (url === '/v2/') return void response.end('{}');
    const name = /^\/v2\/team\/tools\/(?:manifests|blobs)\/(.+)$/.exec(url)?.[1] ?? '';
    const blob = name === '1' ? manifest : blobs.get(name);
    if (blob === undefined) return void response.writeHead(404).end();
    const type = blob === manifest ? manifestType : 'application/octet-stream';
    response.writeHead(200, { 'content-type': type, 'content-length': blob.length, 'docker-content-digest': digestOf(blob) });
    response.end(method === 'HEAD' ? undefined : blob);
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  return {
    host: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
}

const digestOf = (blob: Buffer) => `sha256:${createHash('sha256').update(blob).digest('hex')}`;
