// The two C functions that the executor needs and Node does not offer, called through the binary of koffi.

import { existsSync } from 'node:fs';

export interface CFunctions {
  /** Returns at once. The exit status is not kept. */
  waitpid(pid: number): void;
  ignoreSignal(signal: number): void;
}

interface Koffi {
  load(path: null): { func(declaration: string): (...args: (number | null)[]) => number };
}

const doNotWait = 1;
const ignore = 1;

/** Takes 3 ms. Undefined if there is no binary for this machine. */
export function loadCFunctions(binary: string): CFunctions | undefined {
  if (!existsSync(binary)) return undefined;
  const module = { exports: {} };
  process.dlopen(module, binary);
  const library = (module.exports as Koffi).load(null);
  const waitpid = library.func('int waitpid(int pid, void *status, int options)');
  const signal = library.func('long signal(int number, long handler)');
  return {
    waitpid: (pid) => void waitpid(pid, null, doNotWait),
    ignoreSignal: (number) => void signal(number, ignore),
  };
}
