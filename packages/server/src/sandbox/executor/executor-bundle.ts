// Reads the parts of the executor that a snapshot is made from: its bundle, its Python host, and the binaries for this machine.

import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { findForeignFunctions, findParts, findPtyBinary } from '../../base/parts.ts';

export interface ExecutorParts {
  readonly bundle: string;
  /** Files that are placed next to the snapshot. */
  readonly files: readonly { readonly name: string; readonly text: string }[];
  /** The paths of the binaries that it loads, which are placed there too. */
  readonly binaries: readonly string[];
}

export async function readExecutor(): Promise<ExecutorParts> {
  const { executor, pythonHost } = findParts();
  const bundle = await readFile(executor, 'utf8').catch((error) => {
    throw new Error(`the executor is not built: ${fileURLToPath(executor)} cannot be read; run \`npm run build:executor\``, {
      cause: error,
    });
  });
  const binaries = [findPtyBinary(), findForeignFunctions()].filter((path) => path !== undefined);
  return { bundle, files: [{ name: 'ipython_host.py', text: await readFile(pythonHost, 'utf8') }], binaries };
}
