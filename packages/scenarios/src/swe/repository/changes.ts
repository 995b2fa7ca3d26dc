// What the agent changed in the repository, as it is taken from its sandbox and kept until it is judged: an archive of changed files, and the
// paths of all others. No program of the sandbox takes part, and nothing inside `.git` is taken.

import type { Sandbox } from '@millrace/sandbox';

const maxArtifactBytes = 60 << 20;
const maxArtifactEntries = 50_000;

export interface Changes {
  /** A tar archive. */
  readonly archive: Buffer;
  /** Paths of files that the agent left as they were, each followed by a null character. */
  readonly unchanged: Buffer;
}

interface TakeOptions {
  /** When the agent got the sandbox; absent: everything counts as changed. */
  readonly sinceMs?: number;
  readonly signal?: AbortSignal;
}

/** Kills everything that the agent left running. Throws `artifact-too-large` or `not-found`. */
export async function takeChanges(sandbox: Sandbox, workdir: string, options: TakeOptions): Promise<Buffer> {
  const limits = { maxBytes: maxArtifactBytes, maxEntries: maxArtifactEntries };
  const read = { ...limits, stopPrograms: true, anyLink: true, exclude: ['.git'], listUnchanged: true, ...options };
  const { archive, unchanged } = await sandbox.readFolder(workdir, read);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(unchanged.length);
  return Buffer.concat([length, unchanged, archive]);
}

export function readChanges(artifact: Buffer): Changes {
  const at = 4 + artifact.readUInt32BE(0);
  return { unchanged: artifact.subarray(4, at), archive: artifact.subarray(at) };
}
