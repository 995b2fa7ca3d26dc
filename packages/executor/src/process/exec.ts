// One-off programs: a process group of its own, standard input given, output capped. The answer comes when the program exits,
// also when a process it left behind still holds its pipes.

import type { ChildProcess } from 'node:child_process';
import type { ExecParams, ExecReply } from '@millrace/protocol';
import { CallError } from '../wire/call-error.ts';
import { isUsedUp, offerToKernel, type ProgramLimits, renderLaunch, withoutTerminals } from './launch.ts';
import { sendSignal } from './processes.ts';

export interface ExecRun {
  readonly reply: ExecReply;
  readonly body: Buffer;
}

export interface ExecContext {
  readonly home: string;
  readonly env: Readonly<Record<string, string>>;
  readonly limits: ProgramLimits;
  readonly signal: AbortSignal;
}

/** How long to read on after the exit where something else holds the pipes. */
const drainMs = 100;
const longestTimerMs = 2 ** 31 - 1;

export async function runProgram(params: ExecParams, input: Buffer, context: ExecContext): Promise<ExecRun> {
  const [file = '', ...args] = renderLaunch(params.argv, context.limits);
  const env = { ...context.env, ...params.env };
  const { spawn } = await import('node:child_process'); // the executor is ready milliseconds sooner without it
  const options = { cwd: params.cwd ?? context.home, env, detached: true };
  const child = withoutTerminals(['pipe', 'pipe', 'pipe'], (stdio) => spawn(file, args, { ...options, stdio }));
  const exit = waitForExit(child);
  if (!child.stdin || !child.stdout || !child.stderr) throw await exit.catch((error) => error); // without open files there are no pipes either
  if (child.pid !== undefined) offerToKernel(child.pid);
  const stdout = keepHead(child.stdout, params.cap_bytes);
  const stderr = keepHead(child.stderr, params.cap_bytes);
  child.stdin.on('error', () => {}); // a program need not read its input
  child.stdin.end(input);
  let timedOut = false;
  const kill = () => child.pid !== undefined && sendSignal(-child.pid, 'SIGKILL');
  const timer = setTimeout(
    () => {
      timedOut = true;
      kill();
    },
    Math.min(params.timeout_ms, longestTimerMs),
  );
  context.signal.addEventListener('abort', kill, { once: true });
  if (context.signal.aborted) kill();
  const { exitCode, signal, problem } = await exit.finally(() => {
    clearTimeout(timer);
    context.signal.removeEventListener('abort', kill);
  });
  const [out, err] = [stdout(), problem === undefined ? stderr() : { bytes: Buffer.from(problem), cut: 0 }];
  const sizes = { stdout_bytes: out.bytes.length, stderr_bytes: err.bytes.length, cut_bytes: out.cut + err.cut };
  return { reply: { exit_code: exitCode, signal, timed_out: timedOut, ...sizes }, body: Buffer.concat([out.bytes, err.bytes]) };
}

interface Exit {
  readonly exitCode: number | null;
  readonly signal: string | null;
  readonly problem?: string;
}

/** A program that cannot be started answers as in a shell: 127 when it is not there, 126 otherwise, and why on standard error. */
function waitForExit(child: ChildProcess): Promise<Exit> {
  return new Promise((resolve, reject) => {
    child.once('error', (error: NodeJS.ErrnoException) => {
      if (isUsedUp(error)) return reject(new CallError('limit', `no program can be started: ${error.message}`));
      resolve({ exitCode: error.code === 'ENOENT' ? 127 : 126, signal: null, problem: `${error.message}\n` });
    });
    child.once('exit', (exitCode, signal) => {
      const done = () => {
        clearTimeout(timer);
        child.stdout?.destroy();
        child.stderr?.destroy();
        resolve({ exitCode, signal });
      };
      const timer = setTimeout(done, drainMs);
      child.once('close', done);
    });
  });
}

/** Reads all of it, so that the program never blocks, and keeps the beginning. */
function keepHead(stream: NodeJS.ReadableStream, capBytes: number): () => { bytes: Buffer; cut: number } {
  const chunks: Buffer[] = [];
  let kept = 0;
  let total = 0;
  stream.on('data', (chunk: Buffer) => {
    const piece = chunk.subarray(0, capBytes - kept);
    if (piece.length > 0) chunks.push(piece);
    kept += piece.length;
    total += chunk.length;
  });
  return () => ({ bytes: Buffer.concat(chunks), cut: total - kept });
}
