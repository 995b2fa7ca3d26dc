// Files and folders between this machine and a sandbox, as tar archives in bounded pieces. The sandbox is not trusted with this
// machine: what comes out is unpacked by our own reader, under limits, and appears under its name only when all of it is there.

import { mkdir, mkdtemp, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join, posix } from 'node:path';
import { messageOf, RolloutError } from '@millrace/protocol';
import type { ExecOptions, ExecResult, TransferOptions } from '../sandbox.ts';
import { unpackTar } from './tar-reader.ts';
import { packTar } from './tar-writer.ts';

type Exec = (argv: readonly string[], options: ExecOptions) => Promise<ExecResult>;

const defaults = { maxBytes: 1 << 30, maxEntries: 100_000, timeoutMs: 120_000 };
const pieceBytes = 8 << 20;
/** An archive is larger than what is in it: a header and padding for each entry, and long names. */
const headerBytes = 4096;

export async function upload(exec: Exec, paths: { from: string; to: string }, options: TransferOptions): Promise<void> {
  const { maxBytes, timeoutMs, signal } = { ...defaults, ...options };
  const run = openRunner(exec, { timeoutMs, signal }, `${paths.from} could not be sent`);
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

/** Answers what was left out. */
export async function download(exec: Exec, paths: { from: string; to: string }, options: TransferOptions): Promise<string[]> {
  const { maxBytes, maxEntries, timeoutMs, signal } = { ...defaults, ...options };
  const run = openRunner(exec, { timeoutMs, signal }, `${paths.from} could not be fetched`);
  await refuseExisting(paths.to);
  const [kind, archive = ''] = (await run(pack, [paths.from])).toString('utf8').trim().split(' ');
  if (kind === 'none') throw new RolloutError('not-found', `${paths.from} is not in the sandbox`);
  await mkdir(dirname(paths.to), { recursive: true });
  const folder = await mkdtemp(`${paths.to}.part-`);
  try {
    const most = maxBytes + maxEntries * headerBytes;
    const skipped = await unpackTar(readPieces(run, archive, most), folder, { maxBytes, maxEntries });
    await rename(kind === 'folder' ? folder : join(folder, basename(paths.from)), paths.to);
    return skipped;
  } catch (error) {
    if (error instanceof RolloutError || signal?.aborted) throw error;
    const seen = messageOf(error);
    throw new RolloutError('sandbox-refused', `${paths.from} could not be unpacked: ${seen}`, { cause: error });
  } finally {
    await rm(folder, { recursive: true, force: true });
    await removeArchive(exec, archive);
  }
}

/** A link given by name is followed; links inside a folder are not. */
const pack = `
if [ -d "$1" ]; then kind=folder; elif [ -f "$1" ]; then kind=file; else echo none; exit; fi
archive=$(mktemp) || exit
if [ $kind = folder ]; then tar -c -f "$archive" -C "$1" .; else tar -c -h -f "$archive" -C "$(dirname -- "$1")" -- "$(basename -- "$1")"; fi
code=$?; if [ $code -ne 0 ]; then rm -f "$archive"; exit $code; fi
echo $kind "$archive"`;

type Run = (script: string, args: readonly string[], stdin?: Buffer) => Promise<Buffer>;

function openRunner(exec: Exec, options: { timeoutMs: number; signal?: AbortSignal | undefined }, what: string): Run {
  const { timeoutMs, signal } = options;
  return async (script, args, stdin = Buffer.alloc(0)) => {
    const limits = { timeoutMs, capBytes: pieceBytes, ...(signal ? { signal } : {}) };
    const result = await exec(['sh', '-c', script, 'sh', ...args], { ...limits, stdin });
    if (result.exitCode === 0) return result.stdout;
    const how = result.timedOut ? `not done after ${timeoutMs} ms` : `exit code ${result.exitCode ?? result.signal}`;
    throw new RolloutError('sandbox-refused', `${what}: ${how}: ${result.stderr.toString('utf8').slice(0, 500).trim()}`);
  };
}

async function* readPieces(run: Run, archive: string, most: number): AsyncGenerator<Buffer> {
  for (let index = 0; index * pieceBytes < most; index += 1) {
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
  const there = await stat(path).then(
    () => true,
    () => false,
  );
  if (there) throw new RolloutError('conflict', `${path} is already there`);
}

async function removeArchive(exec: Exec, archive: string): Promise<void> {
  // Without the caller's signal: it may have been what ended us. A sandbox that is gone has taken the archive with it.
  await exec(['rm', '-f', '--', archive], { timeoutMs: 10_000 }).catch(() => {}); // as said
}
