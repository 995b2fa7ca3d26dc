// A file lock between processes on one machine. The kernel releases it when its holder exits, for any reason. flock(1) holds it
// for us while its standard input is open.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';

interface FileLockOptions {
  /** A shared lock can have any number of holders, but excludes an exclusive lock. */
  readonly shared?: boolean;
  readonly signal?: AbortSignal;
}

export async function openFileLock(path: string, options: FileLockOptions = {}): Promise<AsyncDisposable> {
  const lock = await take(path, options, []);
  if (lock === undefined) throw new Error(`flock could not lock ${path}`);
  return lock;
}

/** Absent when another holder has the lock. */
export async function tryFileLock(path: string): Promise<AsyncDisposable | undefined> {
  return take(path, {}, ['--nonblock']);
}

async function take(path: string, { shared, signal }: FileLockOptions, flags: readonly string[]): Promise<AsyncDisposable | undefined> {
  signal?.throwIfAborted();
  const args = ['--no-fork', shared ? '--shared' : '--exclusive', ...flags, path, 'sh', '-c', 'echo && exec cat'];
  // In its own session: a Ctrl-C in our terminal must not release the lock.
  const holder = spawn('flock', args, { detached: true, stdio: ['pipe', 'pipe', 'ignore'] });
  const onAbort = () => holder.kill('SIGKILL');
  signal?.addEventListener('abort', onAbort, { once: true });
  try {
    const isHeld = await new Promise<boolean>((resolve, reject) => {
      holder.once('error', reject);
      holder.once('close', () => resolve(false));
      holder.stdout.once('data', () => resolve(true));
    });
    signal?.throwIfAborted();
    return isHeld ? { [Symbol.asyncDispose]: () => release(holder) } : undefined;
  } finally {
    signal?.removeEventListener('abort', onAbort);
  }
}

async function release(holder: ChildProcess): Promise<void> {
  if (holder.exitCode !== null || holder.signalCode !== null) return;
  const ended = once(holder, 'exit');
  holder.stdin?.end();
  await ended;
}
