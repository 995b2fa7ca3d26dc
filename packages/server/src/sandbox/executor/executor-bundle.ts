// Reads the parts of the executor that a snapshot is made from: its bundle, its Python host, and the PTY library's binary for this machine.

import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { findParts, findPtyBinary } from '../../base/parts.ts';

export interface ExecutorParts {
  readonly bundle: string;
  /** Files that go next to the snapshot. */
  readonly files: readonly { readonly name: string; readonly text: string }[];
  /** The path of the PTY library's binary, which goes there too. */
  readonly binary: string;
}

export async function readExecutor(): Promise<ExecutorParts> {
  const { executor, pythonHost } = findParts();
  const bundle = await readFile(executor, 'utf8').catch((error) => {
    throw new Error(`the executor is not built: ${fileURLToPath(executor)} cannot be read; run \`npm run build:executor\``, {
      cause: error,
    });
  });
  return { bundle, files: [{ name: 'ipython_host.py', text: await readFile(pythonHost, 'utf8') }], binary: findPtyBinary() };
}
