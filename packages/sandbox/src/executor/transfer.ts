// Copies files and folders between this machine and a sandbox, as tar archives in pieces of limited size. The sandbox is not trusted: its
// archive is unpacked by our own reader, under limits, and appears under its final name only when it is complete.

import { lstat, mkdir, mkdtemp, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join, posix } from 'node:path';
import { definedOf, messageOf, RolloutError } from '@millrace/protocol';
import { exists } from '../run-folder/make-once.ts';
import type { ExecOptions, ExecResult, TransferOptions } from '../sandbox.ts';
import { unpackTar } from './tar-reader.ts';
import { packTar } from './tar-writer.ts';

type Exec = (argv: readonly string[], options: ExecOptions) => Promise<ExecResult>;

const defaults = { maxBytes: 1 << 30, maxEntries: 100_000, timeoutMs: 120_000 };
const pieceBytes = 8 << 20;
/** Each entry of an archive adds a header, padding, and headers for long names. */
const headerBytes = 4096;

export async function upload(exec: Exec, paths: { from: string; to: string }, options: TransferOptions): Promise<void> {
  const { maxBytes, timeoutMs, signal } = { ...defaults, ...options };
  const run = openRunner(exec, { timeoutMs, signal }, `${paths.from} could not be uploaded`);
  const isFolder = (await stat(paths.from)).isDirectory();
  const archive = (await run('mktemp', [])).toString('utf8').trim();
  try {
    let sent = 0;
    for await (const piece of inPieces(packTar(paths.from, isFolder ? '.' : posix.basename(paths.to)))) {
      sent += piece.length;
      if (sent > maxBytes) throw new RolloutError('artifact-too-large', `${paths.from} has more than ${maxBytes} bytes`);
      await run('cat >>"$1"', [archive], piece);
    }
    const folder = isFolder ? paths.to : posix.dirname(paths.to);
    await run('mkdir -p -- "$2" && tar -x -p -f "$1" -C "$2" --no-same-owner', [archive, folder]);
  } finally {
    await removeArchive(exec, archive);
  }
}

/** Returns what was left out. */
export async function download(exec: Exec, paths: { from: string; to: string }, options: TransferOptions): Promise<string[]> {
  const { maxBytes, maxEntries, timeoutMs, signal } = { ...defaults, ...options };
  const run = openRunner(exec, { timeoutMs, signal }, `${paths.from} could not be downloaded`);
  await refuseExisting(paths.to);
  const [kind, archive = ''] = (await run(pack, [paths.from])).toString('utf8').trim().split(' ');
  if (kind === 'none') throw new RolloutError('not-found', `${paths.from} is not in the sandbox`);
  await mkdir(dirname(paths.to), { recursive: true });
  const folder = await mkdtemp(`${paths.to}.part-`);
  try {
    const maxArchiveBytes = maxBytes + maxEntries * headerBytes;
    const skipped = await unpackTar(readPieces(run, archive, maxArchiveBytes), folder, { maxBytes, maxEntries });
    await rename(kind === 'folder' ? folder : await findFile(folder, paths.from), paths.to);
    return skipped;
  } catch (error) {
    if (error instanceof RolloutError || signal?.aborted) throw error;
    throw new RolloutError('sandbox-refused', `${paths.from} could not be unpacked: ${messageOf(error)}`, { cause: error });
  } finally {
    await rm(folder, { recursive: true, force: true });
    await removeArchive(exec, archive);
  }
}

/** The only file of the archive. A link in its place would point to a file next to the target, on this machine. */
async function findFile(folder: string, from: string): Promise<string> {
  const path = join(folder, basename(from));
  if ((await lstat(path)).isFile()) return path;
  throw new RolloutError('sandbox-refused', `the archive of ${from} does not contain a regular file of that name`);
}

/** If the path itself is a link, it is followed; links inside a folder are not. */
const pack = `
if [ -d "$1" ]; then kind=folder; elif [ -f "$1" ]; then kind=file; else echo none; exit; fi
archive=$(mktemp) || exit
if [ $kind = folder ]; then tar -c -f "$archive" -C "$1" .; else tar -c -h -f "$archive" -C "$(dirname -- "$1")" -- "$(basename -- "$1")"; fi
code=$?; if [ $code -ne 0 ]; then rm -f "$archive"; exit $code; fi
echo $kind "$archive"`;

type RunScript = (script: string, args: readonly string[], stdin?: Buffer) => Promise<Buffer>;

function openRunner(exec: Exec, options: { timeoutMs: number; signal?: AbortSignal | undefined }, what: string): RunScript {
  const { timeoutMs, signal } = options;
  return async (script, args, stdin = Buffer.alloc(0)) => {
    const result = await exec(['sh', '-c', script, 'sh', ...args], definedOf({ stdin, timeoutMs, capBytes: pieceBytes, signal }));
    if (result.exitCode === 0) return result.stdout;
    const how = result.timedOut ? `not finished after ${timeoutMs} ms` : `exit code ${result.exitCode ?? result.signal}`;
    throw new RolloutError('sandbox-refused', `${what}: ${how}: ${result.stderr.toString('utf8').slice(0, 500).trim()}`);
  };
}

async function* readPieces(run: RunScript, archive: string, maxBytes: number): AsyncGenerator<Buffer> {
  for (let index = 0; index * pieceBytes < maxBytes; index += 1) {
    const piece = await run(`dd if="$1" bs=${pieceBytes} skip=${index} count=1 2>/dev/null`, [archive]);
    if (piece.length > 0) yield piece;
    if (piece.length < pieceBytes) return;
  }
}

async function* inPieces(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let held: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of chunks) {
    held.push(chunk);
    bytes += chunk.length;
    if (bytes < pieceBytes) continue;
    yield Buffer.concat(held);
    [held, bytes] = [[], 0];
  }
  if (bytes > 0) yield Buffer.concat(held);
}

async function refuseExisting(path: string): Promise<void> {
  if (await exists(path)) throw new RolloutError('conflict', `${path} already exists`);
}

async function removeArchive(exec: Exec, archive: string): Promise<void> {
  // Without the caller's signal, which may be aborted.
  await exec(['rm', '-f', '--', archive], { timeoutMs: 10_000 }).catch(() => {}); // the archive ends with the sandbox anyway
}
