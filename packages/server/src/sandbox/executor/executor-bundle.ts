// Finds the parts of the executor: the bundle and the Python host that `npm run build:executor` wrote, and the PTY library's binary for this
// machine.

import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

export interface ExecutorParts {
  readonly bundle: string;
  /** Files that are placed next to the snapshot. */
  readonly files: readonly { readonly name: string; readonly text: string }[];
  /** The path of the PTY library's binary, which is placed there too. */
  readonly binary: string;
}

export async function readExecutor(): Promise<ExecutorParts> {
  const bundlePath = fileURLToPath(import.meta.resolve('@millrace/executor/dist/executor.cjs'));
  const bundle = await readFile(bundlePath, 'utf8').catch((error) => {
    throw new Error(`the executor is not built: ${bundlePath} cannot be read; run \`npm run build:executor\``, { cause: error });
  });
  const python = fileURLToPath(import.meta.resolve('@millrace/executor/dist/ipython_host.py'));
  return { bundle, files: [{ name: 'ipython_host.py', text: await readFile(python, 'utf8') }], binary: findBinary() };
}

function findBinary(): string {
  const library = createRequire(import.meta.resolve('@millrace/executor')).resolve('@lydell/node-pty');
  return createRequire(library).resolve(`@lydell/node-pty-${process.platform}-${process.arch}/pty.node`);
}
