// Bundles the executor, by default into packages/executor/dist: one CommonJS file, from which workers make a snapshot of Node, and the
// Python host next to it. Takes about 100 ms, so that setup can run it every time.

import { copyFile, mkdir } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { build, type Metafile, type Plugin } from 'esbuild';

const executor = fileURLToPath(new URL('../packages/executor/', import.meta.url));

/** A snapshot cannot hold native code. The PTY library's binary is loaded at start from the folder of the program's first argument. */
const loadBinaryAtStart: Plugin = {
  name: 'load-binary-at-start',
  setup({ onLoad }) {
    onLoad({ filter: /node-pty\/requireBinary\.js$/ }, () => ({
      contents: `
        const { dirname, join } = require('node:path');
        exports.requireBinary = (name) => {
          const module = { exports: {} };
          process.dlopen(module, join(dirname(process.argv[1]), name));
          return module.exports;
        };`,
    }));
    onLoad({ filter: /node-pty\/windows\w+\.js$/ }, () => ({ contents: '' }));
  },
};

/** Returns what esbuild says about the bundle. */
export async function buildExecutor(folder = `${executor}dist`): Promise<Metafile> {
  await mkdir(folder, { recursive: true });
  const { metafile } = await build({
    entryPoints: [`${executor}src/snapshot.ts`],
    outfile: `${folder}/executor.cjs`,
    bundle: true,
    platform: 'node',
    target: 'esnext',
    format: 'cjs',
    supported: { 'dynamic-import': false }, // a process started from a snapshot can only require
    define: { 'import.meta.main': 'false' },
    plugins: [loadBinaryAtStart],
    metafile: true,
    logLevel: 'warning',
  });
  await copyFile(`${executor}python/ipython_host.py`, `${folder}/ipython_host.py`);
  return metafile;
}

if (import.meta.main) await buildExecutor();
