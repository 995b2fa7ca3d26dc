// Programs that run while the worker talks to them: it writes to their standard input and reads what they print, piece by piece. Each has
// its own process group, which is killed when it is closed.

import type { ChildProcess } from 'node:child_process';
import type { ProgramOpenParams, ProgramReadParams, ProgramReadReply } from '@millrace/protocol';
import { CallError } from '../wire/call-error.ts';
import type { ExecContext } from './exec.ts';
import { isUsedUp, preferAsOomVictim, renderLaunch, withoutTerminals } from './launch.ts';
import { sendSignal } from './processes.ts';
import { adopt } from './reap.ts';
import { startTimer } from './timer.ts';

/** A program whose output is not read stops here. */
const maxWaiting = 1 << 20;
const keptErrorBytes = 16 * 1024;

interface OpenProgram {
  readonly child: ChildProcess;
  chunks: Buffer[];
  waitingBytes: number;
  stderr: Buffer;
  end: { readonly exitCode: number | null; readonly signal: string | null } | undefined;
  /** Called when there is something to read. */
  wake: () => void;
}

export class OpenPrograms {
  readonly #programs = new Map<number, OpenProgram>();
  #next = 1;

  async open(params: ProgramOpenParams, context: Omit<ExecContext, 'signal'>): Promise<{ program: number }> {
    const [file = '', ...args] = renderLaunch(params.argv, context.limits);
    const { spawn } = await import('node:child_process');
    const options = { cwd: params.cwd ?? context.home, env: { ...context.env, ...params.env }, detached: true };
    const child = withoutTerminals(['pipe', 'pipe', 'pipe'], (stdio) => spawn(file, args, { ...options, stdio }));
    adopt(child, context.children);
    const program: OpenProgram = { child, chunks: [], waitingBytes: 0, stderr: Buffer.alloc(0), end: undefined, wake: () => {} };
    listen(program);
    if (child.pid === undefined) throw await failedStart(child);
    preferAsOomVictim(child.pid);
    const id = this.#next++;
    this.#programs.set(id, program);
    return { program: id };
  }

  /** Resolves when the program has taken it, or ended. */
  async write(id: number, data: Buffer, signal: AbortSignal): Promise<void> {
    const { stdin } = this.#find(id).child;
    if (!stdin || stdin.destroyed || stdin.write(data)) return;
    await new Promise<void>((resolve) => {
      for (const event of ['drain', 'close']) stdin.once(event, () => resolve());
      signal.addEventListener('abort', () => resolve(), { once: true });
    });
  }

  /** What the program printed since the last read; waits for the first byte, its end, or the time. */
  async read(params: ProgramReadParams, signal: AbortSignal): Promise<{ reply: ProgramReadReply; body: Buffer }> {
    const program = this.#find(params.program);
    if (program.chunks.length === 0 && !program.end && !signal.aborted) {
      await new Promise<void>((resolve) => {
        const timer = startTimer(params.timeout_ms, resolve);
        program.wake = () => {
          clearTimeout(timer);
          resolve();
        };
        signal.addEventListener('abort', program.wake, { once: true });
      });
      program.wake = () => {};
    }
    const all = Buffer.concat(program.chunks);
    const data = all.subarray(0, params.cap_bytes);
    const rest = all.subarray(data.length);
    program.chunks = rest.length > 0 ? [rest] : [];
    program.waitingBytes = rest.length;
    if (program.waitingBytes < maxWaiting) program.child.stdout?.resume();
    const end = rest.length === 0 ? program.end : undefined;
    const stderr = end ? program.stderr : Buffer.alloc(0);
    const sizes = { stdout_bytes: data.length, stderr_bytes: stderr.length };
    const ended = { ended: end !== undefined, exit_code: end?.exitCode ?? null, signal: end?.signal ?? null };
    return { reply: { ...ended, ...sizes }, body: Buffer.concat([data, stderr]) };
  }

  close(id: number): void {
    const program = this.#programs.get(id);
    this.#programs.delete(id);
    if (program?.child.pid !== undefined) sendSignal(-program.child.pid, 'SIGKILL');
    program?.wake();
  }

  #find(id: number): OpenProgram {
    const program = this.#programs.get(id);
    if (!program) throw new CallError('not-found', `there is no program ${id}: it was closed`);
    return program;
  }
}

function listen(program: OpenProgram): void {
  const { stdin, stdout, stderr } = program.child;
  stdin?.on('error', () => {}); // a program need not read its input
  stdout?.on('data', (chunk: Buffer) => {
    program.chunks.push(chunk);
    program.waitingBytes += chunk.length;
    if (program.waitingBytes >= maxWaiting) stdout.pause();
    program.wake();
  });
  stderr?.on('data', (chunk: Buffer) => {
    program.stderr = Buffer.concat([program.stderr, chunk]).subarray(-keptErrorBytes);
  });
  const end = (exitCode: number | null, signal: string | null) => {
    program.end ??= { exitCode, signal };
    program.wake();
  };
  program.child.once('error', () => end(null, null));
  program.child.once('close', end);
}

function failedStart(child: ChildProcess): Promise<CallError> {
  return new Promise((resolve) => {
    child.once('error', (error: NodeJS.ErrnoException) => {
      if (isUsedUp(error)) return resolve(new CallError('limit', `no program can be started: ${error.message}`, error));
      resolve(new CallError(error.code === 'ENOENT' ? 'not-found' : 'failed', error.message));
    });
  });
}
