// Bundles the executor into packages/executor/dist: one CommonJS file, from which workers make a Node snapshot, and the Python host. It
// takes about 100 ms, so setup runs it every time.

import { copyFile, mkdir } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { build, type Plugin } from 'esbuild';

const executor = fileURLToPath(new URL('../packages/executor/', import.meta.url));

/** A snapshot cannot contain native code: the PTY library's binary is loaded at start, from the folder of the executor. */
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

await mkdir(`${executor}dist`, { recursive: true });
await build({
  entryPoints: [`${executor}src/snapshot.ts`],
  outfile: `${executor}dist/executor.cjs`,
  bundle: true,
  platform: 'node',
  target: 'esnext',
  format: 'cjs',
  supported: { 'dynamic-import': false }, // a process started from a snapshot can only require
  define: { 'import.meta.main': 'false' },
  plugins: [loadBinaryAtStart],
  logLevel: 'warning',
});
await copyFile(`${executor}python/ipython_host.py`, `${executor}dist/ipython_host.py`);
