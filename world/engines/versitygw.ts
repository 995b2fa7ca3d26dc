// A real S3 server: versitygw, which serves a folder. Built from the Go module proxy into the cache of the second test tier.

import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { EngineProcess } from './engine-process.ts';
import { worldCacheFolder } from './world-cache.ts';

const version = '1.8.0';

export const s3Credentials = { AWS_ACCESS_KEY_ID: 'millrace', AWS_SECRET_ACCESS_KEY: 'not-a-secret-of-anyone' };

/** Installs it on the first call; needs Go for that. */
function findVersitygw(): string {
  const folder = join(worldCacheFolder(), `versitygw-${version}`);
  const program = join(folder, 'versitygw');
  if (existsSync(program)) return program;
  mkdirSync(folder, { recursive: true });
  const env = { ...process.env, GOBIN: folder, GOFLAGS: '-trimpath' };
  execFileSync('go', ['install', `github.com/versity/versitygw/cmd/versitygw@v${version}`], { env, stdio: ['ignore', 'ignore', 'pipe'] });
  return program;
}

/** Serves the folder: each folder in it is a bucket. */
export async function openVersitygw(folder: string): Promise<EngineProcess> {
  const { AWS_ACCESS_KEY_ID: access, AWS_SECRET_ACCESS_KEY: secret } = s3Credentials;
  return await EngineProcess.open({
    name: 'versitygw',
    program: findVersitygw(),
    args: (port) => ['--access', access, '--secret', secret, '--port', `127.0.0.1:${port}`, '--health', '/health', 'posix', folder],
    startMs: 30_000,
  });
}
