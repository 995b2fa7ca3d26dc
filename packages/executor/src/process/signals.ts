// The signals that an agent can send to the executor. None of them ends it.

import type { CFunctions } from './c-functions.ts';

const named = [
  'SIGHUP',
  'SIGINT',
  'SIGQUIT',
  'SIGTERM',
  'SIGUSR1',
  'SIGUSR2',
  'SIGALRM',
  'SIGSTKFLT',
  'SIGVTALRM',
  'SIGPROF',
  'SIGIO',
  'SIGPWR',
] as const;
const [firstRealTime, lastRealTime] = [34, 64];

/**
 * The kernel drops signals that processes inside send to process 1, with one gap: in a process with threads, a signal whose default action
 * is to end it still does so if it arrives while the main thread blocks it. A handler closes that gap. The signals of faults (SIGSEGV and the
 * like) do not have the gap, and stay fatal where the executor causes them.
 */
export function handleSignals(): void {
  for (const signal of named) process.on(signal, () => {});
}

/** Node has no handlers for them. Programs inherit that they are ignored, until they set a handler. */
export function ignoreRealTimeSignals({ ignoreSignal }: CFunctions): void {
  for (let signal = firstRealTime; signal <= lastRealTime; signal += 1) ignoreSignal(signal);
}
