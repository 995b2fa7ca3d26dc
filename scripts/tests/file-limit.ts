// A time limit for every test file. The test runner's own timeout cannot stop a file that blocks its event loop or ignores SIGTERM, so
// this watches the runner's child processes and kills one that lives too long, with everything it started.

import { readdirSync, readFileSync } from 'node:fs';

interface FileLimit extends Disposable {
  /** The command lines of the processes that were killed. */
  readonly killed: readonly string[];
}

export function openFileLimit(limitMs: number): FileLimit {
  const seenAt = new Map<number, number>();
  const killed: string[] = [];
  const timer = setInterval(() => {
    const now = performance.now();
    const children = childrenOf(process.pid);
    for (const pid of seenAt.keys()) if (!children.includes(pid)) seenAt.delete(pid);
    for (const pid of children) {
      const firstSeen = seenAt.get(pid);
      if (firstSeen === undefined) seenAt.set(pid, now);
      else if (now - firstSeen > limitMs) {
        killed.push(commandOf(pid));
        killTree(pid);
      }
    }
  }, 500);
  timer.unref();
  return { killed, [Symbol.dispose]: () => clearInterval(timer) };
}

function childrenOf(pid: number): number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
      readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number),
    );
  } catch {
    return []; // it exited while we looked
  }
}

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').filter(Boolean).at(-1) ?? String(pid);
  } catch {
    return String(pid); // it exited while we looked
  }
}

function killTree(pid: number): void {
  const children = childrenOf(pid);
  try {
    process.kill(pid, 'SIGKILL');
  } catch {} // it exited first
  children.forEach(killTree);
}
