// Watches a bash that runs a command, because the end marker may never come. A program that dies of SIGINT makes bash discard the rest of its
// line, a shell can stop itself, and a command can break a shell so that it runs nothing.

import { readlinkSync } from 'node:fs';
import { listProcesses, readProcess, sendSignal } from '../process/processes.ts';

export interface WatchOptions {
  readonly wasRead: () => boolean;
  /** Bash waits for input although the command has not ended. */
  readonly onIdle: () => void;
  /** Bash has waited for input ever since, for `brokenMs`. */
  readonly onBroken: () => void;
}

/**
 * The next looks come after as long as the command has been running, up to the longest. The first is late on purpose: with hundreds of
 * sandboxes on full cores an ordinary command takes 200 ms, and a first look after 100 ms took a fifth of their CPU time.
 */
const firstMs = 500;
const longestMs = 5000;
/** While bash waits for input. */
const idleMs = 100;
/** On a busy machine, what we typed may take hundreds of milliseconds to reach bash: the kernel passes it on in the background. */
export const brokenMs = 1500;

export function watchBash(pid: number, { wasRead, onIdle, onBroken }: WatchOptions): { close(): void } {
  const beganMs = performance.now();
  let idleSinceMs: number | undefined;
  let isBroken = false;
  let timer = setTimeout(look, firstMs);

  function look(): void {
    const isIdle = isWaiting(pid, wasRead);
    const nowMs = performance.now();
    if (isIdle && idleSinceMs === undefined) onIdle();
    idleSinceMs = isIdle ? (idleSinceMs ?? nowMs) : undefined;
    if (idleSinceMs !== undefined && nowMs - idleSinceMs >= brokenMs && !isBroken) {
      isBroken = true;
      onBroken();
    }
    const elapsedMs = nowMs - beganMs;
    timer = setTimeout(look, isIdle ? idleMs : Math.min(elapsedMs, longestMs));
  }
  return { close: () => clearTimeout(timer) };
}

/**
 * Whether bash sleeps without running the command: it has not read it, or its standard input, which is empty during a command, is the terminal
 * again. A bash that has not been scheduled yet does not sleep.
 */
function isWaiting(pid: number, wasRead: () => boolean): boolean {
  const stat = readProcess(pid);
  if (stat?.state === 'T') sendSignal(pid, 'SIGCONT');
  if (stat?.state !== 'S' || stat.foreground !== stat.group) return false;
  if (wasRead() && !isTerminal(`/proc/${pid}/fd/0`)) return false;
  return !listProcesses().some((other) => other.group === stat.group && other.pid !== pid);
}

function isTerminal(link: string): boolean {
  try {
    return readlinkSync(link).startsWith('/dev/pts/');
  } catch {
    return false; // bash has ended, or has no standard input
  }
}
