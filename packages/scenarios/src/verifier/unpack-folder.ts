// Puts the folder that `readFolder` packed in the agent's sandbox into a sandbox of the verifier.

import { definedOf, RolloutError } from '@millrace/protocol';
import type { ExecResult, Sandbox } from '@millrace/sandbox';
import { z } from 'zod';

const workspace = '/workspace';
const timeoutMs = 60_000;

interface UnpackOptions {
  readonly signal?: AbortSignal;
}

export interface Unpacked {
  /** What `readFolder` left out of the archive, each with its reason. Pass it to `runCheck`, which shows it in the details. */
  readonly skipped: readonly string[];
}

/**
 * Unpacks an archive of `readFolder` into /workspace of a fresh sandbox. Throws `evaluate-failed` if its image has no tar program, and
 * `policy-failed` if the files do not fit into the sandbox.
 */
export async function unpackFolder(sandbox: Sandbox, archive: Buffer, options: UnpackOptions = {}): Promise<Unpacked> {
  const { exitCode, stderr } = await runTar(sandbox, archive, options);
  if (exitCode === 0) return { skipped: readSkipped(archive) };
  if (exitCode === 127) throw new RolloutError('evaluate-failed', 'there is no tar program in the image: add tar to it');
  const output = stderr.subarray(-2000).toString('utf8').trim();
  throw new RolloutError('policy-failed', `the agent's files could not be unpacked: tar ended with ${exitCode ?? 'a signal'}: ${output}`);
}

const blockBytes = 512;
const notes = z.array(z.string()).catch([]);

/** From the comment that comes first in the archive. */
function readSkipped(archive: Buffer): readonly string[] {
  if (archive.toString('latin1', 156, 157) !== 'g') return [];
  const size = Number.parseInt(archive.toString('latin1', 124, 136), 8);
  const [, text = '[]'] = /^\d+ comment=(.*)\n$/s.exec(archive.toString('utf8', blockBytes, blockBytes + size)) ?? [];
  return notes.parse(parseJson(text));
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // not an archive of `readFolder`
  }
}

interface TarOptions extends UnpackOptions {
  /** Made if it is not there; /workspace by default. */
  readonly folder?: string;
}

export function runTar(sandbox: Sandbox, archive: Buffer, { folder, signal }: TarOptions): Promise<ExecResult> {
  const unpack = ['tar', '--extract', '--file=-', '--no-same-owner', '--directory'];
  const make = folder === undefined ? [] : ['/bin/sh', '-c', 'mkdir -p -- "$0" && exec "$@" "$0"', folder];
  const command = [...make, ...unpack, ...(folder === undefined ? [workspace] : [])];
  return sandbox.exec(command, definedOf({ stdin: archive, timeoutMs, signal }));
}
