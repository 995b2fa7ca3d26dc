// One evaluation, as its programs are charged: on a clock that counts only their own time. What the machine did to them is not a verdict: a
// program that it starved or killed ends the evaluation as disturbed.

import type { Clock } from '@millrace/base/clock';
import { Deadline, type Uncharged } from '@millrace/base/deadline';
import { RolloutError } from '@millrace/protocol';
import type { ExecOptions, ExecResult, Sandbox, ShellOptions } from '../sandbox.ts';
import { OwnClock } from './own-clock.ts';

/** How many times its own time an evaluation may take by the wall clock. */
const stretch = 10;
/** For a limit of milliseconds, this is what the machine may take to start and to end a program. */
const spareMs = 60_000;
const wallMsOf = (ownMs: number): number => stretch * ownMs + spareMs;
/** A program that was stopped by the wall clock had its time if it used this much of it. */
const fairShare = 0.8;

export interface OwnTimeOptions {
  /** For the messages of errors: `evaluate`. */
  readonly what: string;
  /** Of the programs themselves. */
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** The last try takes a kill whose sender is not known as the doing of the program: it was repeated in fresh sandboxes before. */
  readonly isLastTry: boolean;
}

export class OwnTime implements Disposable {
  readonly deadline: Deadline;
  /** Aborts when the time is up, on either clock, or with the signal of the options. */
  readonly signal: AbortSignal;
  readonly #own: OwnClock;
  readonly #options: OwnTimeOptions;
  readonly #stopWall: () => void;

  constructor(options: OwnTimeOptions) {
    const { what, timeoutMs, clock, signal } = options;
    this.#options = options;
    this.#own = new OwnClock({ clock });
    this.deadline = new Deadline(what, timeoutMs, this.#own);
    const starved = new AbortController();
    const wallMs = wallMsOf(timeoutMs);
    this.#stopWall = clock.after(wallMs, () => starved.abort(toStarved(`${what} got too little of this machine for ${wallMs / 1000} s`)));
    this.signal = AbortSignal.any([signal, this.deadline.signal, starved.signal]);
  }

  /** The same sandbox; its programs are charged by the clock, and their limits are limits of their own time. */
  watch(sandbox: Sandbox): Sandbox {
    this.#own.watch(sandbox);
    return {
      ...sandbox,
      exec: (argv, options) => this.#exec(sandbox, argv, options),
      runShell: (command, options) =>
        this.#run(
          options,
          (within) => sandbox.runShell(command, within),
          ({ end }) => end === 'timeout' || end === 'shell-killed',
        ),
      runPython: (code, options) =>
        this.#run(
          options,
          (within) => sandbox.runPython(code, within),
          ({ end }) => end === 'timeout',
        ),
    };
  }

  [Symbol.dispose](): void {
    this.#stopWall();
    this.deadline[Symbol.dispose]();
  }

  async #exec(sandbox: Sandbox, argv: readonly string[], options: ExecOptions): Promise<ExecResult> {
    const expire = new AbortController();
    const stop = this.#own.after(options.timeoutMs, () => expire.abort());
    const before = sandbox.readUse();
    try {
      const timeoutMs = wallMsOf(options.timeoutMs);
      const uncharged = this.#uncharged;
      const expiring = options.expire ? AbortSignal.any([expire.signal, options.expire]) : expire.signal;
      const result = await sandbox.exec(argv, { ...options, timeoutMs, expire: expiring, uncharged });
      if (result.timedOut && !expiring.aborted) throw toStarved(`${argv[0]} got too little of this machine for ${timeoutMs / 1000} s`);
      if (result.signal === 'SIGKILL' && !result.timedOut && !options.judgesKills) this.#checkKill(argv, before, sandbox);
      return result;
    } finally {
      stop();
    }
  }

  readonly #uncharged: Uncharged = (wait) => this.deadline.uncharged(wait);

  /** A kill at the sandbox's own limit of memory is a result. */
  #checkKill(argv: readonly string[], before: ReturnType<Sandbox['readUse']>, sandbox: Sandbox): void {
    const { ownOomKills, foreignOomKills } = sandbox.readUse();
    if (foreignOomKills > before.foreignOomKills)
      throw new RolloutError('evaluate-disturbed', `${argv[0]} was killed because this machine ran out of memory`);
    if (ownOomKills > before.ownOomKills || this.#options.isLastTry) return;
    throw new RolloutError('evaluate-disturbed', `${argv[0]} was killed by SIGKILL, and not at a limit of its sandbox`);
  }

  async #run<R>(options: ShellOptions, run: (options: ShellOptions) => Promise<R>, hasTimedOut: (result: R) => boolean): Promise<R> {
    const startedMs = this.#own.monotonic();
    const result = await run({ ...options, uncharged: this.#uncharged });
    const usedMs = this.#own.monotonic() - startedMs;
    if (hasTimedOut(result) && usedMs < fairShare * options.timeoutMs)
      throw new RolloutError(
        'evaluate-disturbed',
        `a command got ${(usedMs / 1000).toFixed(1)} s of its ${options.timeoutMs / 1000} s: this machine is busy`,
      );
    return result;
  }
}

/** What happened to an evaluation without any doing of the agent's programs; `starved` is not worth another try on this machine. */
export function findDisturbance(error: RolloutError): 'passing' | 'starved' | undefined {
  if (isStarved(error)) return 'starved';
  return /^(evaluate-disturbed|sandbox-(died|failed|start-failed))$/.test(error.code) ? 'passing' : undefined;
}

/** What a machine gave too little time for. Nothing is gained by trying it again at once. */
export function toStarved(message: string): RolloutError {
  return new RolloutError('evaluate-disturbed', message, { details: { starved: true } });
}

const isStarved = (error: RolloutError): boolean => error.code === 'evaluate-disturbed' && error.details?.starved === true;
