// Where the parts that are started or read by path are. A source checkout runs TypeScript files in their folders; the published package
// holds a build, in which all parts lie in one folder. This is the only module that knows the difference.

import { createRequire } from 'node:module';

const isBuilt = import.meta.url.endsWith('.js');

export interface Parts {
  /** The entry of a worker process. */
  readonly worker: URL;
  /** The entry of a thread of the SQLite store. */
  readonly storeThread: URL;
  /** What a scenario imports as `millrace/scenario`. */
  readonly scenario: URL;
  /** The executor as one CommonJS file. */
  readonly executor: URL;
  /** The program that runs an agent's Python cells; it lies next to the executor. */
  readonly pythonHost: URL;
}

export function findParts(): Parts {
  if (isBuilt) {
    return {
      worker: new URL('./worker-main.js', import.meta.url),
      storeThread: new URL('./store-thread.js', import.meta.url),
      scenario: new URL('./scenario.js', import.meta.url),
      executor: new URL('./executor/executor.cjs', import.meta.url),
      pythonHost: new URL('./executor/ipython_host.py', import.meta.url),
    };
  }
  return {
    worker: new URL('../worker-main.ts', import.meta.url),
    storeThread: new URL('../store/sqlite/thread.ts', import.meta.url),
    scenario: new URL('../scenario/public.ts', import.meta.url),
    executor: new URL(import.meta.resolve('@millrace/executor/dist/executor.cjs')),
    pythonHost: new URL(import.meta.resolve('@millrace/executor/dist/ipython_host.py')),
  };
}

/** The path of the PTY library's binary for this machine. Throws where npm installed none. */
export function findPtyBinary(): string {
  const library = createRequire(isBuilt ? import.meta.url : import.meta.resolve('@millrace/executor')).resolve('@lydell/node-pty');
  return createRequire(library).resolve(`@lydell/node-pty-${process.platform}-${process.arch}/pty.node`);
}
