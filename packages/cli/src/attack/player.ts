// A process that plays hackers, as its parent sees it. One that a hacker froze is killed, and the next order starts another.

import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { findParts } from '@millrace/base/parts';
import type { ServiceConfig } from '@millrace/server';
import { type AttackOrder, type PlayerOrder, type PlayerReport, playerReport } from './wire.ts';

interface PlayerOptions {
  readonly config: ServiceConfig;
  /** For the files of this player. */
  readonly folder: string;
}

/** How much CPU time a player may use without a sign of life. */
const frozenMs = 5_000;
const lookMs = 1000;
const closeMs = 10_000;

export class Player implements AsyncDisposable {
  readonly #options: PlayerOptions;
  #child: Promise<ChildProcess> | undefined;

  constructor(options: PlayerOptions) {
    this.#options = options;
  }

  /** Rejects only if the process cannot be started, or the signal aborts. */
  async attack(order: AttackOrder, signal: AbortSignal): Promise<PlayerReport> {
    this.#child ??= this.#start();
    const child = await this.#child;
    signal.throwIfAborted();
    const over = new AbortController();
    const both = AbortSignal.any([signal, over.signal]);
    try {
      send(child, order);
      return await Promise.race([readReply(child, both), this.#watch(child, both)]);
    } finally {
      over.abort();
    }
  }

  async #start(): Promise<ChildProcess> {
    const child = fork(findParts().attackPlayer, {
      detached: true, // a Ctrl-C in the terminal does not reach it
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      execArgv: ['--disable-warning=ExperimentalWarning', '--disable-warning=MODULE_TYPELESS_PACKAGE_JSON'],
    });
    send(child, { kind: 'open', ...this.#options });
    const ended = once(child, 'exit').then(([code]) => {
      throw new Error(`the player of the attacks could not be started: exit code ${code}`);
    });
    const ready = waitFor(child, ({ kind }) => kind === 'ready');
    await Promise.race([ready, ended]);
    ended.catch(() => {}); // `#watch` sees a later end
    return child;
  }

  /** Resolves when the player froze or died. */
  async #watch(child: ChildProcess, signal: AbortSignal): Promise<PlayerReport> {
    let beatAt = cpuMsOf(child);
    const onBeat = () => {
      beatAt = cpuMsOf(child);
    };
    child.on('message', onBeat);
    const { promise, resolve } = Promise.withResolvers<PlayerReport>();
    const froze = (why: string) => {
      this.#child = undefined;
      child.kill('SIGKILL');
      resolve({ kind: 'attacked', outcome: 'froze', why, reward: null });
    };
    const onExit = () => froze('the process that judged it ended');
    const timer = setInterval(() => {
      const usedMs = cpuMsOf(child) - beatAt;
      if (usedMs > frozenMs) froze(`judging kept the event loop for ${Math.round(usedMs / 1000)} s of CPU time, and was stopped`);
    }, lookMs);
    child.once('exit', onExit);
    signal.addEventListener('abort', () => {
      clearInterval(timer);
      child.off('message', onBeat).off('exit', onExit);
    });
    return await promise;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const child = await this.#child?.catch(() => undefined);
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    const timer = setTimeout(() => child.kill('SIGKILL'), closeMs);
    if (child.connected) child.disconnect();
    await exited;
    clearTimeout(timer);
  }
}

function send(child: ChildProcess, order: PlayerOrder): void {
  child.send(order, () => {}); // a player that is gone shows as its exit
}

async function readReply(child: ChildProcess, signal: AbortSignal): Promise<PlayerReport> {
  return await waitFor(child, ({ kind }) => kind !== 'beat' && kind !== 'ready', signal);
}

function waitFor(child: ChildProcess, isWanted: (said: PlayerReport) => boolean, signal?: AbortSignal): Promise<PlayerReport> {
  const { promise, resolve, reject } = Promise.withResolvers<PlayerReport>();
  const onMessage = (message: unknown) => {
    const said = playerReport.parse(message);
    if (isWanted(said)) resolve(said);
  };
  child.on('message', onMessage);
  signal?.addEventListener('abort', () => {
    child.off('message', onMessage);
    reject(signal.reason);
  });
  return promise.finally(() => child.off('message', onMessage));
}

/** The CPU time of its own threads. */
function cpuMsOf({ pid }: ChildProcess): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return (Number(fields[11]) + Number(fields[12])) * 10;
  } catch {
    return 0; // it has ended
  }
}
