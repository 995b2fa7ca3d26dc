// A disk of a few megabytes that a test can fill and free: a tmpfs, which only root can mount.

import { execFileSync } from 'node:child_process';
import { closeSync, openSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { makeTempFolder } from '@millrace/testkit';

export const smallDiskSkip = process.getuid?.() === 0 ? false : 'only root can mount a tmpfs';

export interface SmallDisk extends AsyncDisposable {
  readonly path: string;
  /** Writes until no byte is left. */
  fill(): void;
  /** Gives back what `fill` took. */
  free(): void;
}

export async function mountSmallDisk(): Promise<SmallDisk> {
  const folder = await makeTempFolder('small-disk');
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=8m', 'tmpfs', folder.path]);
  const ballast = join(folder.path, 'ballast');
  return {
    path: folder.path,
    fill: () => fillDisk(ballast),
    free: () => rmSync(ballast),
    async [Symbol.asyncDispose]() {
      execFileSync('umount', ['--lazy', folder.path]);
      await folder[Symbol.asyncDispose]();
    },
  };
}

function fillDisk(path: string): void {
  const file = openSync(path, 'w');
  try {
    for (;;) writeSync(file, Buffer.alloc(4096));
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOSPC')) throw error;
  } finally {
    closeSync(file);
  }
}
