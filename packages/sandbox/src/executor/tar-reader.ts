// Unpacks an untrusted tar archive into a new folder. It creates only plain files, folders and links that stay inside, and never writes to
// a path that exists. An entry that leaves the folder or exceeds the limits stops it. Entries of other kinds are left out and listed.

import { constants } from 'node:fs';
import { link, mkdir, open, symlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { RolloutError } from '@millrace/protocol';
import { staysInside } from './wire/inner-link.ts';

interface TarLimits {
  readonly maxBytes: number;
  readonly maxEntries: number;
}

interface TarEntry {
  readonly kind: string;
  readonly path: string;
  readonly target: string;
  readonly size: number;
  readonly mode: number;
}

const blockBytes = 512;
/** Limit for a header that only carries names. */
const maxNameBytes = 64 * 1024;

/** `folder` must be new and empty. Returns what was left out, each with its reason. */
export async function unpackTar(chunks: AsyncIterable<Buffer>, folder: string, limits: TarLimits): Promise<string[]> {
  const reader = openReader(chunks);
  const skipped: string[] = [];
  const files = new Set<string>();
  const links: TarEntry[] = [];
  let bytes = 0;
  let entries = 0;
  for (let entry = await readEntry(reader); entry; entry = await readEntry(reader)) {
    entries += 1;
    bytes += entry.size;
    if (entries > limits.maxEntries) throw new RolloutError('artifact-too-large', `more than ${limits.maxEntries} files and folders`);
    if (bytes > limits.maxBytes) throw new RolloutError('artifact-too-large', `more than ${limits.maxBytes} bytes`);
    const path = toInnerPath(entry.path);
    if (entry.kind === 'file') await writeEntry(reader, join(folder, path), entry);
    else await reader.skip(padded(entry.size));
    if (entry.kind === 'file') files.add(path);
    else if (entry.kind === 'folder') await mkdir(join(folder, path), { recursive: true, mode: entry.mode | 0o700 });
    else if (entry.kind === 'hard link') await linkEntry(folder, { path, target: toInnerPath(entry.target), files });
    else if (entry.kind === 'link' && staysInside(path, entry.target)) links.push({ ...entry, path });
    else skipped.push(`${path} (${entry.kind}${entry.kind === 'link' ? ` to ${entry.target}, outside` : ''})`);
  }
  // Links are created last, and all folders before the first link, so that nothing is ever created through a link.
  for (const { path } of links) await mkdir(dirname(join(folder, path)), { recursive: true });
  for (const { path, target } of links) await symlink(target, join(folder, path));
  return skipped;
}

/** A relative path without `..`. The folder itself is the empty path. */
function toInnerPath(path: string): string {
  const parts = path.split('/').filter((part) => part !== '' && part !== '.');
  if (path.startsWith('/') || parts.includes('..') || path.includes('\0')) throw refusal(`the path ${JSON.stringify(path.slice(0, 200))}`);
  return parts.join('/');
}

async function writeEntry(reader: ByteReader, path: string, { size, mode }: TarEntry): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;
  await using file = await open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, (mode & 0o777) | 0o600);
  for (let left = size; left > 0; ) {
    const piece = await reader.readSome(left);
    await file.writeFile(piece);
    left -= piece.length;
  }
  await reader.skip(padded(size) - size);
}

async function linkEntry(folder: string, entry: { path: string; target: string; files: Set<string> }): Promise<void> {
  if (!entry.files.has(entry.target)) throw refusal(`the hard link ${entry.path} to ${entry.target}, which is not a file of the archive`);
  await mkdir(dirname(join(folder, entry.path)), { recursive: true });
  await link(join(folder, entry.target), join(folder, entry.path));
  entry.files.add(entry.path);
}

const kinds: Readonly<Record<string, string>> = {
  '0': 'file',
  '\0': 'file',
  '7': 'file',
  '1': 'hard link',
  '2': 'link',
  '3': 'character device',
  '4': 'block device',
  '5': 'folder',
  '6': 'pipe',
};

/** The next entry, with long names from the headers before it; undefined at the end of the archive. */
async function readEntry(reader: ByteReader): Promise<TarEntry | undefined> {
  const names: { path?: string; linkpath?: string; size?: string } = {};
  for (;;) {
    const header = await reader.read(blockBytes);
    if (header.every((byte) => byte === 0)) return undefined;
    checkSum(header);
    const type = String.fromCharCode(header[156] ?? 0);
    const size = names.size === undefined ? parseNumber(header.subarray(124, 136)) : Number(names.size);
    if (!Number.isSafeInteger(size) || size < 0) throw refusal(`a file of ${size} bytes`);
    if ('xgLK'.includes(type)) {
      if (size > maxNameBytes) throw refusal(`a name of ${size} bytes`);
      const text = (await reader.read(padded(size))).subarray(0, size);
      if (type === 'x') Object.assign(names, parsePax(text));
      else if (type !== 'g') names[type === 'L' ? 'path' : 'linkpath'] = toText(text);
      continue;
    }
    const kind = kinds[type] ?? `entry of type ${JSON.stringify(type)}`;
    const prefix = header.toString('latin1', 257, 262) === 'ustar' && header[262] === 0 ? toText(header.subarray(345, 500)) : '';
    const name = toText(header.subarray(0, 100));
    const path = names.path ?? (prefix === '' ? name : `${prefix}/${name}`);
    const target = names.linkpath ?? toText(header.subarray(157, 257));
    return { kind, path, target, size: kind.includes('link') ? 0 : size, mode: parseNumber(header.subarray(100, 108)) & 0o777 };
  }
}

function checkSum(header: Buffer): void {
  const stated = parseNumber(header.subarray(148, 156));
  const sum = header.reduce((total, byte, index) => total + (index >= 148 && index < 156 ? 0x20 : byte), 0);
  if (stated !== sum) throw refusal('an invalid header');
}

/** Octal text. A base-256 number states 8 GiB or more, and counts as too large. */
function parseNumber(field: Buffer): number {
  return (field[0] ?? 0) & 0x80 ? Number.MAX_SAFE_INTEGER : Number.parseInt(toText(field).trim() || '0', 8);
}

function parsePax(bytes: Buffer): Record<string, string> {
  const fields: Record<string, string> = {};
  for (let at = 0; at < bytes.length; ) {
    const length = Number.parseInt(bytes.toString('latin1', at, at + 8), 10);
    if (!(length > 0) || at + length > bytes.length) throw refusal('an invalid header');
    const [, key = '', value = ''] = /^\d+ ([^=]+)=([\s\S]*)\n$/.exec(bytes.toString('utf8', at, at + length)) ?? [];
    if (key === 'path' || key === 'linkpath' || key === 'size') fields[key] = value;
    if (key.startsWith('GNU.sparse')) throw refusal('a sparse file');
    at += length;
  }
  return fields;
}

function toText(field: Buffer): string {
  const end = field.indexOf(0);
  return field.toString('utf8', 0, end < 0 ? field.length : end);
}

function padded(size: number): number {
  return Math.ceil(size / blockBytes) * blockBytes;
}

function refusal(what: string): RolloutError {
  return new RolloutError('sandbox-refused', `the archive from the sandbox contains ${what}`);
}

interface ByteReader {
  /** Exactly this many bytes. */
  read(bytes: number): Promise<Buffer>;
  /** At least one byte, at most this many. */
  readSome(most: number): Promise<Buffer>;
  skip(bytes: number): Promise<void>;
}

function openReader(chunks: AsyncIterable<Buffer>): ByteReader {
  const source = chunks[Symbol.asyncIterator]();
  let held: Buffer = Buffer.alloc(0);

  async function readSome(most: number): Promise<Buffer> {
    while (held.length === 0) {
      const { done, value } = await source.next();
      if (done) throw refusal('less data than its headers state');
      held = value;
    }
    const piece = held.subarray(0, most);
    held = held.subarray(piece.length);
    return piece;
  }
  async function read(bytes: number): Promise<Buffer> {
    const pieces: Buffer[] = [];
    for (let left = bytes; left > 0; left -= pieces.at(-1)?.length ?? 0) pieces.push(await readSome(left));
    return Buffer.concat(pieces);
  }
  async function skip(bytes: number): Promise<void> {
    for (let left = bytes; left > 0; ) left -= (await readSome(left)).length;
  }
  return { read, readSome, skip };
}
