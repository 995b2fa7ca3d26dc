// A disk of a few megabytes that a test can fill and free: a tmpfs, which only root can mount.

import { execFileSync } from 'node:child_process';
import { closeSync, openSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { makeTempFolder } from '../../temp-folder.ts';

export const smallDiskSkip = process.getuid?.() === 0 ? false : 'only root can mount a tmpfs';

export interface SmallDisk extends AsyncDisposable {
  readonly path: string;
  /** Writes until no byte is left. */
  fill(): void;
  /** Gives back what `fill` took. */
  free(): void;
}

export async function mountSmallDisk({ mib = 8 }: { readonly mib?: number } = {}): Promise<SmallDisk> {
  const folder = await makeTempFolder('small-disk');
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${mib}m`, 'tmpfs', folder.path]);
  const ballast = join(folder.path, 'ballast');
  return {
    path: folder.path,
    fill: () => fillDisk(ballast),
    free: () => rmSync(ballast, { force: true }),
    async [Symbol.asyncDispose]() {
      execFileSync('umount', ['--lazy', folder.path]);
      await folder[Symbol.asyncDispose]();
    },
  };
}

/** Large pieces first, because a disk may have hundreds of megabytes, and then single pages. */
function fillDisk(path: string): void {
  const file = openSync(path, 'w');
  try {
    for (const piece of [Buffer.alloc(2 ** 20), Buffer.alloc(4096)]) writeUntilFull(file, piece);
  } finally {
    closeSync(file);
  }
}

function writeUntilFull(file: number, piece: Buffer): void {
  try {
    for (;;) writeSync(file, piece);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOSPC')) throw error;
  }
}
