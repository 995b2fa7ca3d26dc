// Packs a file or a folder of this machine as a tar archive, in chunks, without loading a whole file into memory.

import { lstat, open, readdir, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { RolloutError } from '@millrace/protocol';
import { renderTarHeader, renderTarPadding, tarBlockBytes } from './wire/tar-header.ts';

/** `name` is the name of the file or folder in the archive. Links are packed as links. Pipes, sockets and devices are refused. */
export async function* packTar(path: string, name: string): AsyncGenerator<Buffer> {
  yield* packEntry(path, name);
  yield Buffer.alloc(2 * tarBlockBytes);
}

async function* packEntry(path: string, name: string): AsyncGenerator<Buffer> {
  const stat = await lstat(path);
  const { mode } = stat;
  if (stat.isSymbolicLink()) {
    yield renderTarHeader({ name, mode, type: '2', size: 0, target: await readlink(path) });
  } else if (stat.isDirectory()) {
    yield renderTarHeader({ name: `${name}/`, mode, type: '5', size: 0, target: '' });
    for (const child of (await readdir(path)).sort()) yield* packEntry(join(path, child), `${name}/${child}`);
  } else if (stat.isFile()) {
    yield renderTarHeader({ name, mode, type: '0', size: stat.size, target: '' });
    yield* packContent(path, stat.size);
  } else throw new RolloutError('bad-request', `${path} is neither a file, a folder nor a link`);
}

/** Exactly as many bytes as the header says, even if the file has changed since. */
async function* packContent(path: string, size: number): AsyncGenerator<Buffer> {
  await using file = await open(path);
  let sent = 0;
  if (size > 0) {
    for await (const chunk of file.createReadStream({ end: size - 1, autoClose: false })) {
      sent += chunk.length;
      yield chunk;
    }
  }
  if (sent < size) throw new RolloutError('bad-request', `${path} shrank from ${size} to ${sent} bytes while it was read`);
  yield renderTarPadding(size);
}
