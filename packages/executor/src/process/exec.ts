// One-off programs: each runs in its own process group, with the given standard input and capped output. The reply is sent when the
// program exits, even if a background process still holds its pipes.

import type { ChildProcess } from 'node:child_process';
import type { ExecParams, ExecReply, ProgramLimits } from '@millrace/protocol';
import { CallError, messageOf } from '../wire/call-error.ts';
import { isUsedUp, preferAsOomVictim, renderLaunch, withoutTerminals } from './launch.ts';
import { sendSignal } from './processes.ts';
import { adopt, type OwnChildren } from './reap.ts';
import { startTimer } from './timer.ts';

export interface ExecRun {
  readonly reply: ExecReply;
  readonly body: Buffer;
}

export interface ExecContext {
  readonly home: string;
  readonly env: Readonly<Record<string, string>>;
  readonly limits: ProgramLimits;
  readonly children: OwnChildren;
  readonly signal: AbortSignal;
}

/** The reason with which a program is stopped whose time is up by the worker's clock. */
export const expired = 'expired';

/** How long to keep reading after the exit while another process holds the pipes. */
const drainMs = 100;
const maxProblem = 1000;

export async function runProgram(params: ExecParams, input: Buffer, context: ExecContext): Promise<ExecRun> {
  const [file = '', ...args] = renderLaunch(params.argv, context.limits);
  const env = { ...context.env, ...params.env };
  const { spawn } = await import('node:child_process'); // loaded late: it would delay the start by milliseconds
  const options = { cwd: params.cwd ?? context.home, env, detached: true };
  let child: ChildProcess;
  try {
    child = withoutTerminals(['pipe', 'pipe', 'pipe'], (stdio) => spawn(file, args, { ...options, stdio }));
  } catch (error) {
    return toRun(toExit(error), { timedOut: false }); // arguments or variables that the kernel or Node.js refuses
  }
  adopt(child, context.children);
  const exit = waitForExit(child);
  if (!child.stdin || !child.stdout || !child.stderr) throw await exit.catch((error) => error); // no pipes: out of file descriptors
  if (child.pid !== undefined) preferAsOomVictim(child.pid);
  const stdout = keepHead(child.stdout, params.cap_bytes);
  const stderr = keepHead(child.stderr, params.cap_bytes);
  child.stdin.on('error', () => {}); // a program need not read its input
  child.stdin.end(input);
  let timedOut = false;
  const kill = () => child.pid !== undefined && sendSignal(-child.pid, 'SIGKILL');
  const timer = startTimer(params.timeout_ms, () => {
    timedOut = true;
    kill();
  });
  const stop = () => {
    timedOut ||= context.signal.reason === expired;
    kill();
  };
  context.signal.addEventListener('abort', stop, { once: true });
  if (context.signal.aborted) stop();
  const ended = await exit.finally(() => {
    clearTimeout(timer);
    context.signal.removeEventListener('abort', stop);
  });
  return toRun(ended, { timedOut, stdout: stdout(), stderr: stderr() });
}

interface Exit {
  readonly exitCode: number | null;
  readonly signal: string | null;
  readonly problem?: string;
}

interface Kept {
  readonly bytes: Buffer;
  readonly cut: number;
}

const nothing: Kept = { bytes: Buffer.alloc(0), cut: 0 };

function toRun(
  { exitCode, signal, problem }: Exit,
  { timedOut, stdout = nothing, stderr = nothing }: { readonly timedOut: boolean; readonly stdout?: Kept; readonly stderr?: Kept },
): ExecRun {
  const err = problem === undefined ? stderr : { bytes: Buffer.from(problem), cut: 0 };
  const sizes = { stdout_bytes: stdout.bytes.length, stderr_bytes: err.bytes.length, cut_bytes: stdout.cut + err.cut };
  return { reply: { exit_code: exitCode, signal, timed_out: timedOut, ...sizes }, body: Buffer.concat([stdout.bytes, err.bytes]) };
}

/** A program that cannot be started ends as in a shell: with 127 if it is not found, otherwise 126, and the reason on standard error. */
function toExit(error: unknown): Exit {
  if (isUsedUp(error)) throw new CallError('limit', `no program can be started: ${messageOf(error)}`, error);
  const exitCode = (error as NodeJS.ErrnoException).code === 'ENOENT' ? 127 : 126;
  return { exitCode, signal: null, problem: `${messageOf(error).slice(0, maxProblem)}\n` };
}

function waitForExit(child: ChildProcess): Promise<Exit> {
  return new Promise((resolve, reject) => {
    child.once('error', (error) => {
      try {
        resolve(toExit(error));
      } catch (limit) {
        reject(limit);
      }
    });
    child.once('exit', (exitCode, signal) => {
      const done = () => {
        clearTimeout(timer);
        child.stdout?.destroy();
        child.stderr?.destroy();
        resolve({ exitCode, signal });
      };
      // On a busy machine the time may be up before what the program wrote was read once: reading comes before an immediate.
      const timer = setTimeout(() => setImmediate(done), drainMs);
      child.once('close', done);
    });
  });
}

/** Keeps the beginning, and reads the rest so that the program never blocks. */
function keepHead(stream: NodeJS.ReadableStream, capBytes: number): () => Kept {
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
