// Packs a file or a folder of this machine as a tar archive, in chunks, without loading a whole file into memory.

import type { Stats } from 'node:fs';
import { lstat, open, readdir, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { RolloutError } from '@millrace/protocol';

const blockBytes = 512;

/** `name` is the name of the file or folder in the archive. Links are packed as links. Pipes, sockets and devices are refused. */
export async function* packTar(path: string, name: string): AsyncGenerator<Buffer> {
  yield* packEntry(path, name);
  yield Buffer.alloc(2 * blockBytes);
}

async function* packEntry(path: string, name: string): AsyncGenerator<Buffer> {
  const stat = await lstat(path);
  if (stat.isSymbolicLink()) {
    yield renderHeader(name, stat, { type: '2', size: 0, target: await readlink(path) });
  } else if (stat.isDirectory()) {
    yield renderHeader(`${name}/`, stat, { type: '5', size: 0, target: '' });
    for (const child of (await readdir(path)).sort()) yield* packEntry(join(path, child), `${name}/${child}`);
  } else if (stat.isFile()) {
    yield renderHeader(name, stat, { type: '0', size: stat.size, target: '' });
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
  yield Buffer.alloc((blockBytes - (size % blockBytes)) % blockBytes);
}

interface EntryKind {
  readonly type: string;
  readonly size: number;
  readonly target: string;
}

function renderHeader(name: string, stat: Stats, kind: EntryKind): Buffer {
  const long: [string, string][] = [];
  if (Buffer.byteLength(name) > 100) long.push(['path', name]);
  if (Buffer.byteLength(kind.target) > 100) long.push(['linkpath', kind.target]);
  if (kind.size >= 8 ** 11) long.push(['size', String(kind.size)]);
  const plain = renderBlock(name, stat.mode & 0o777, kind);
  if (long.length === 0) return plain;
  const records = Buffer.from(long.map(([key, value]) => renderRecord(key, value)).join(''));
  const padding = Buffer.alloc((blockBytes - (records.length % blockBytes)) % blockBytes);
  return Buffer.concat([renderBlock('long-names', 0o644, { type: 'x', size: records.length, target: '' }), records, padding, plain]);
}

/** A record starts with its length, which includes the digits of the length itself. */
function renderRecord(key: string, value: string): string {
  const rest = Buffer.byteLength(` ${key}=${value}\n`);
  const length = rest + String(rest + String(rest).length).length;
  return `${length} ${key}=${value}\n`;
}

function renderBlock(name: string, mode: number, { type, size, target }: EntryKind): Buffer {
  const block = Buffer.alloc(blockBytes);
  const octal = (value: number, digits: number) => (value % 8 ** digits).toString(8).padStart(digits, '0');
  block.write(name, 0, 100);
  block.write(octal(mode, 7), 100);
  block.write(`${octal(0, 7)}\0${octal(0, 7)}\0${octal(size, 11)}\0${octal(0, 11)}\0        ${type}`, 108);
  block.write(target, 157, 100);
  block.write('ustar\x0000', 257);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${octal(sum, 6)}\0 `, 148);
  return block;
}
