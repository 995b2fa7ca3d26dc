// What makes a runtime run in any image, also one with another C library or none: every library that it and the installed packages load, and
// the loader, from this machine. They are given to the loader as arguments and not as variables, which the agent's programs would inherit.

import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { runProgram } from '@millrace/base/run-program';
import { harnessFolder } from '../layout.ts';

/** Copies the libraries of a program, and of everything that it may load from these folders, to `folder/libs`. Prints the loader's name. */
const copyLibraries = `set -e
to=$1; program=$2; shift 2
mkdir -p "$to/libs"
(printf '%s\\0' "$program"; find "$@" -type f \\( -name '*.so' -o -name '*.so.*' -o -name '*.node' \\) -print0) |
  xargs -0 ldd 2>/dev/null | grep -oE '(=> |^\\s+)/[^ ]+' | grep -oE '/.*' | grep -v "^$to/" | sort -u |
  while read -r file; do cp -nL -- "$file" "$to/libs/"; done
basename "$(ls "$to"/libs/ld-*.so* | head -n 1)"`;

interface Bundle {
  /** The folder of the installation. */
  readonly folder: string;
  /** Below the folder: the runtime's own program, and what starts it with the bundled libraries. */
  readonly program: string;
  readonly start: string;
  /** Folders with libraries that are loaded later, below the folder. */
  readonly loads: readonly string[];
  /** Arguments before those of the caller. */
  readonly args?: readonly string[];
  readonly signal?: AbortSignal | undefined;
}

export async function bundleLibraries({ folder, program, start, loads, args = [], signal }: Bundle): Promise<void> {
  const paths = [folder, join(folder, program), ...loads.map((name) => join(folder, name))];
  const loader = (await runProgram(['bash', '-c', copyLibraries, 'bash', ...paths], { signal })).trim();
  const libs = `${harnessFolder}/libs`;
  const command = [`${libs}/${loader}`, '--library-path', libs, `${harnessFolder}/${program}`, ...args].join(' ');
  await mkdir(dirname(join(folder, start)), { recursive: true });
  await writeFile(join(folder, start), `#!/bin/sh\nexec ${command} "$@"\n`);
  await chmod(join(folder, start), 0o755);
}
