// A Python environment in the agent's sandbox: a program that keeps running and answers one JSON line with one.

import { describeIssues, message } from '@millrace/protocol';
import { OwnClock, type Sandbox, type SandboxProgram } from '@millrace/sandbox';
import { z } from 'zod';
import type { CallTime } from '../tool-time.ts';

const failure = z.object({ error: z.object({ type: z.string(), message: z.string(), stack: z.string() }) });
const messages = z.array(message);

export const resetReply = z.object({ messages: messages.min(1) });
export const stepReply = z.object({
  messages,
  reward: z.number(),
  done: z.boolean(),
  info: z.record(z.string(), z.unknown()).default({}),
});
export const closeReply = z.object({ metrics: z.record(z.string(), z.unknown()).default({}) });
export type StepReply = z.infer<typeof stepReply>;

/** Of the time that a call may take: what is left is for the failure to be attributed. */
const ownShare = 0.8;

const readMs = 60_000;

/** More than this in one line is not an observation. */
const maxLineBytes = 8 << 20;

/** The environment raised, ended, or said what no environment says. */
export class EnvironmentError extends Error {}

type StepLimit = Pick<CallTime, 'timeoutMs' | 'signal'>;

export class Environment implements AsyncDisposable {
  readonly #sandbox: Sandbox;
  readonly #program: SandboxProgram;
  #rest = Buffer.alloc(0);

  private constructor(sandbox: Sandbox, program: SandboxProgram) {
    this.#sandbox = sandbox;
    this.#program = program;
  }

  static async open(sandbox: Sandbox, argv: readonly string[], env: Readonly<Record<string, string>>): Promise<Environment> {
    return new Environment(sandbox, await sandbox.openProgram(argv, { env }));
  }

  /** Throws an EnvironmentError, or the signal's reason. */
  async call<T>(request: Readonly<Record<string, unknown>>, reply: z.ZodType<T>, { timeoutMs, signal }: StepLimit): Promise<T> {
    await this.#program.write(`${JSON.stringify(request)}\n`, { signal });
    const line = await this.#readLine({ timeoutMs, signal });
    const given = parseLine(line);
    const failed = failure.safeParse(given);
    if (failed.success) {
      const { type, message: text, stack } = failed.data.error;
      throw Object.assign(new EnvironmentError(`${type}: ${text}`), { stack });
    }
    const parsed = reply.safeParse(given);
    if (parsed.success) return parsed.data;
    throw new EnvironmentError(`it answered ${request.op} with what cannot be used: ${describeIssues(parsed.error.issues)}`);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return Promise.resolve(this.#program[Symbol.asyncDispose]());
  }

  /** Its time is its own: a wait for a core does not count. */
  async #readLine({ timeoutMs, signal }: StepLimit): Promise<string> {
    const limitMs = timeoutMs * ownShare;
    const clock = new OwnClock();
    clock.watch(this.#sandbox);
    const late = new AbortController();
    const stop = clock.after(limitMs, () => late.abort(new EnvironmentError(`it did not answer within ${limitMs / 1000} s`)));
    try {
      return await this.#readWithin(AbortSignal.any([signal, late.signal]));
    } finally {
      stop();
    }
  }

  async #readWithin(signal: AbortSignal): Promise<string> {
    for (;;) {
      const at = this.#rest.indexOf(10);
      if (at >= 0) {
        const line = this.#rest.toString('utf8', 0, at);
        this.#rest = this.#rest.subarray(at + 1);
        return line;
      }
      if (this.#rest.length > maxLineBytes) throw new EnvironmentError(`it printed a line of more than ${maxLineBytes} bytes`);
      const { data, end } = await this.#program.read({ timeoutMs: readMs, signal });
      this.#rest = Buffer.concat([this.#rest, data]);
      if (end) throw new EnvironmentError(`it ended with ${end.signal ?? `exit code ${end.exitCode}`}: ${end.stderr.trim().slice(-1000)}`);
    }
  }
}

function parseLine(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    throw new EnvironmentError(`it answered with what is not JSON: ${line.slice(0, 200)}`);
  }
}
