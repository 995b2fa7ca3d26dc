// Runs a program to its end, in its own session: a Ctrl-C in the terminal of this process does not reach it, and a cancelled
// program is killed together with the programs that it started.

import { spawn } from 'node:child_process';
import { systemClock } from './clock.ts';
import { sendSignal } from './processes.ts';

interface ProgramOptions {
  /** The environment of this process by default. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal | undefined;
  /** Receives standard output and standard error as they arrive. */
  readonly onText?: (text: string) => void;
}

/** The program could not be started, failed or took too long. */
export class ProgramFailed extends Error {
  readonly stderr: string;

  constructor(message: string, stderr: string) {
    super(stderr === '' ? message : `${message}: ${stderr}`);
    this.stderr = stderr;
  }
}

const keptErrorChars = 4096;

/** Returns standard output. Throws `ProgramFailed`, or the signal's reason; either way, no process of the program is left by then. */
export async function runProgram(command: readonly string[], options: ProgramOptions = {}): Promise<string> {
  const { env = process.env, timeoutMs, signal, onText } = options;
  signal?.throwIfAborted();
  const [file = '', ...args] = command;
  const child = spawn(file, args, { env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
  let [stdout, stderr, isLate] = ['', '', false];
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
    onText?.(text);
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr = (stderr + text).slice(-keptErrorChars);
    onText?.(text);
  });
  const kill = () => child.pid !== undefined && sendSignal(-child.pid, 'SIGKILL');
  const onTimeout = () => {
    isLate = true;
    kill();
  };
  const cancelTimer = timeoutMs === undefined ? () => {} : systemClock.after(timeoutMs, onTimeout);
  signal?.addEventListener('abort', kill, { once: true });
  try {
    const problem = await new Promise<string | undefined>((resolve) => {
      child.once('error', (error) => resolve(error.message));
      child.once('close', (code, by) => resolve(code === 0 ? undefined : `${file} ended with ${by ?? `exit code ${code}`}`));
    });
    signal?.throwIfAborted();
    if (problem === undefined) return stdout;
    throw new ProgramFailed(isLate ? `${file} did not end within ${timeoutMs} ms` : problem, stderr.trim());
  } finally {
    cancelTimer();
    signal?.removeEventListener('abort', kill);
  }
}
