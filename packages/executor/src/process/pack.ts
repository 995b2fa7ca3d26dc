// Packs a folder of the sandbox as a tar archive: files, folders, and links that stay inside. It is the executor that reads, not a program of
// the agent, and nothing that the agent left makes it fail: what cannot be packed is left out and listed, and a file that changes meanwhile
// keeps the size of its header.

import { constants, type Stats } from 'node:fs';
import { chmod, lstat, open, readdir, readlink, realpath } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { FolderReadParams, FolderReadReply } from '@millrace/protocol';
import { CallError, messageOf } from '../wire/call-error.ts';
import { toInnerTarget } from '../wire/inner-link.ts';
import { renderTarHeader, renderTarPadding, tarBlockBytes } from '../wire/tar-header.ts';
import { isUsedUp, killEverything } from './launch.ts';
import { realPathOf, refuseOutside } from './real-path.ts';

/** A tar program that unpacks the archive opens paths of up to 4096 bytes, including those of the folder. */
const maxPathBytes = 3900;
const maxNotes = 20;
/** Shorter than the time after which the worker gives the executor up. */
const maxPackMs = 30_000;

interface Packing extends FolderReadParams {
  /** Without links. */
  readonly folder: string;
  readonly chunks: Buffer[];
  readonly skipped: string[];
  readonly unchanged: Buffer[];
  readonly endMs: number;
  bytes: number;
  entries: number;
}

/** Throws `not-found` if the path is not a folder, and `too-large` at the first entry over a limit. */
export async function packFolder(params: FolderReadParams, home: string): Promise<{ result: FolderReadReply; body: Buffer }> {
  const path = resolve(home, params.path);
  if (params.stop_programs) killEverything();
  const stat = await lstat(path).catch((error) => {
    throw new CallError('not-found', messageOf(error));
  });
  if (!stat.isDirectory()) throw new CallError('not-found', `${path} is not a folder`);
  const folder = await realpath(path);
  refuseOutside(path, folder, home);
  const packing: Packing = {
    ...params,
    folder,
    chunks: [],
    skipped: [],
    unchanged: [],
    endMs: performance.now() + maxPackMs,
    bytes: 0,
    entries: 0,
  };
  await packChildren(packing, folder, '.');
  add(packing, Buffer.alloc(2 * tarBlockBytes));
  const skipped = packing.skipped.slice(0, maxNotes);
  const list = Buffer.concat(packing.unchanged);
  const result = { entries: packing.entries, skipped, left_out: packing.skipped.length, list_bytes: list.length };
  return { result, body: Buffer.concat([...packing.chunks, list]) };
}

async function packChildren(packing: Packing, folder: string, name: string): Promise<void> {
  let children: string[];
  try {
    children = await readdir(folder).catch(async (error) => {
      if (error.code !== 'EACCES') throw error;
      await chmod(folder, 0o700);
      return readdir(folder);
    });
  } catch (error) {
    return skip(packing, name, error);
  }
  const excluded = packing.exclude ?? [];
  for (const child of children.sort()) if (!excluded.includes(child)) await packEntry(packing, `${folder}/${child}`, `${name}/${child}`);
}

async function packEntry(packing: Packing, path: string, name: string): Promise<void> {
  try {
    if (Buffer.byteLength(path) > maxPathBytes) throw new Error('its path is too long');
    if (performance.now() > packing.endMs)
      throw new CallError('too-large', `${packing.path} could not be packed within ${maxPackMs / 1000} s`);
    const stat = await lstat(path);
    const changed = Math.max(stat.ctimeMs, stat.mtimeMs) >= (packing.since_ms ?? 0);
    if (stat.isDirectory()) {
      if (changed) addEntry(packing, { name: `${name}/`, mode: stat.mode | 0o700, type: '5', size: 0, target: '' });
      return await packChildren(packing, path, name);
    }
    if (!changed) return listUnchanged(packing, name);
    if (stat.isSymbolicLink()) addLink(packing, name, await readlink(path));
    else if (stat.isFile()) await packFile(packing, path, name);
    else throw new Error('neither a file, a folder nor a link');
  } catch (error) {
    skip(packing, name, error);
  }
}

function addLink(packing: Packing, name: string, target: string): void {
  const kept = packing.any_link ? target : toInnerTarget({ path: name.slice(2), target, folder: packing.folder });
  if (kept === undefined) throw new Error(`a link to ${target}, outside`);
  addEntry(packing, { name, mode: 0o777, type: '2', size: 0, target: kept });
}

function listUnchanged(packing: Packing, name: string): void {
  if (!packing.list_unchanged) return;
  const path = Buffer.from(`${name.slice(2)}\0`);
  packing.bytes += path.length;
  if (packing.bytes > packing.max_bytes) throw tooLarge(packing);
  packing.unchanged.push(path);
}

async function packFile(packing: Packing, path: string, name: string): Promise<void> {
  const flags = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW;
  await using file = await open(path, flags).catch(async (error) => {
    if (error.code !== 'EACCES') throw error;
    await chmod(path, 0o600);
    return open(path, flags);
  });
  const stat: Stats = await file.stat();
  if (!stat.isFile()) throw new Error('not a regular file');
  if ((await realPathOf(file.fd)) !== path) throw new Error('it was moved, or a folder above it became a link');
  if (packing.bytes + stat.size > packing.max_bytes) throw tooLarge(packing);
  const content = Buffer.alloc(stat.size);
  for (let at = 0; at < content.length; ) {
    const { bytesRead } = await file.read(content, at, content.length - at, at);
    if (bytesRead === 0) break; // it shrank: the rest stays zero
    at += bytesRead;
  }
  addEntry(packing, { name, mode: stat.mode, type: '0', size: content.length, target: '' });
  add(packing, content);
  add(packing, renderTarPadding(content.length));
}

function addEntry(packing: Packing, header: Parameters<typeof renderTarHeader>[0]): void {
  packing.entries += 1;
  if (packing.entries > packing.max_entries) throw tooLarge(packing);
  add(packing, renderTarHeader(header));
}

function add(packing: Packing, bytes: Buffer): void {
  packing.bytes += bytes.length;
  if (packing.bytes > packing.max_bytes) throw tooLarge(packing);
  packing.chunks.push(bytes);
}

function tooLarge({ path, max_bytes, max_entries }: Packing): CallError {
  return new CallError(
    'too-large',
    `${path} has more than ${max_bytes} bytes as an archive, or more than ${max_entries} files and folders`,
  );
}

/** Leaves an entry out. A limit stops the packing. */
function skip(packing: Packing, name: string, error: unknown): void {
  if (error instanceof CallError) throw error;
  if (isUsedUp(error)) throw new CallError('limit', messageOf(error), error);
  packing.skipped.push(`${name.slice(2, 202)} (${messageOf(error).slice(0, 200)})`);
}
