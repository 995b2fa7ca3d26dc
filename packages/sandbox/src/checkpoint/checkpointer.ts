// Takes the checkpoints of one rollout's sandbox at its turn boundaries, while the model samples. A call that comes meanwhile waits until the
// checkpoint is done, so that it never has half of a call; the agent does not pay for that wait.

import { randomUUID } from 'node:crypto';
import type { Clock } from '@millrace/base/clock';
import type { Uncharged } from '@millrace/base/deadline';
import type { Log } from '@millrace/base/log';
import { messageOf } from '@millrace/protocol';
import type { Sandbox } from '../sandbox.ts';
import { NoCheckpoint, takeCheckpoint } from './checkpoint.ts';
import type { CheckpointBudget } from './checkpoint-budget.ts';
import type { CheckpointShelf } from './checkpoint-shelf.ts';

interface CheckpointerOptions {
  readonly sandbox: Sandbox;
  readonly rollout: string;
  /** Those of the driver. */
  readonly folders: readonly string[];
  readonly shelf: CheckpointShelf;
  /** Of the process. */
  readonly budget: CheckpointBudget;
  readonly maxBytes: number;
  readonly log: Log;
  readonly clock: Clock;
}

const closeMs = 900;
/** How many checkpoints may wait until the log has their turn. */
const maxUnlogged = 2;

interface KeptCheckpoint {
  readonly id: string;
  isSaved: boolean;
  isLogged: boolean;
  /** It outlives the rollout. */
  isPinned: boolean;
}

export class Checkpointer implements AsyncDisposable {
  /** The sandbox, for everything that acts in it. */
  readonly sandbox: Sandbox;
  readonly #options: CheckpointerOptions;
  readonly #clock: Clock;
  readonly #closing = new AbortController();
  /** In order. */
  #kept: KeptCheckpoint[] = [];
  /** Nothing was called since this checkpoint. */
  #current: KeptCheckpoint | undefined;
  #taking: { readonly done: Promise<void>; isWaiting: boolean; readonly abort: AbortController } | undefined;
  #notBeforeMs = 0;
  /** Something was called since the last turn boundary. */
  #isTouched = true;
  #isOver = false;
  #hasSkipped = false;

  constructor(options: CheckpointerOptions) {
    this.#options = options;
    this.#clock = options.clock;
    this.sandbox = this.#guard(options.sandbox);
  }

  /** At a turn boundary: the id of the checkpoint that has, or will have, what the sandbox is now. Undefined if none will. */
  begin(memory = '', { isUrgent = false } = {}): string | undefined {
    this.#isTouched = false;
    if (this.#current) return this.#current.id;
    if (this.#isOver || this.#taking || this.#options.shelf.isFull || !(isUrgent || this.#isDue())) return undefined;
    const one = { id: randomUUID(), isSaved: false, isLogged: false, isPinned: false };
    this.#kept.push(one);
    this.#current = one;
    const abort = new AbortController();
    const taking = { isWaiting: true, abort, done: Promise.resolve() };
    taking.done = this.#take(one, taking, memory).finally(() => {
      if (this.#taking === taking) this.#taking = undefined;
    });
    this.#taking = taking;
    return one.id;
  }

  /** Whether nothing was called since the last turn boundary: a checkpoint would be one of it. */
  get isAtBoundary(): boolean {
    return !this.#isTouched;
  }

  /** When the one that is being taken is done: whether this checkpoint is on the disk. */
  async isSaved(id: string): Promise<boolean> {
    await this.#taking?.done;
    return this.#kept.some((one) => one.id === id && one.isSaved);
  }

  /** It stays when the rollout ends, also for other machines. */
  async pin(id: string): Promise<void> {
    for (const one of this.#kept) if (one.id === id) one.isPinned = true;
    await this.share(id, { keepsAll: true });
  }

  /** For the next attempt, on whatever machine. Without it, only this machine has the checkpoint. */
  async share(id: string, { keepsAll }: { readonly keepsAll: boolean }): Promise<void> {
    const { shelf, rollout, log } = this.#options;
    try {
      await shelf.share(rollout, id, { keepsAll });
    } catch (error) {
      log.warn('checkpoint-share-failed', { rolloutId: rollout, error: messageOf(error) });
    }
  }

  #isDue(): boolean {
    const unlogged = this.#kept.filter(({ isLogged }) => !isLogged).length;
    return this.#clock.monotonic() >= this.#notBeforeMs && unlogged < maxUnlogged && this.#options.budget.hasRoom;
  }

  /** The log has the turn of this checkpoint: older ones are not needed any more. */
  noteLogged(id: string): void {
    for (const one of this.#kept) if (one.id === id) one.isLogged = true;
    this.#dropOld();
  }

  /** Takes no more; one that is being taken is given up after a second. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    const giveUp = () => this.#closing.abort(new Error('the attempt is over'));
    if (this.#taking?.isWaiting) giveUp();
    const stop = this.#clock.after(closeMs, giveUp);
    await this.#taking?.done;
    stop();
  }

  async #take(one: KeptCheckpoint, taking: { isWaiting: boolean; readonly abort: AbortController }, memory: string): Promise<void> {
    const { sandbox, rollout, shelf, budget, log } = this.#options;
    const signal = AbortSignal.any([this.#closing.signal, taking.abort.signal, sandbox.died]);
    try {
      using _slot = await budget.slots.acquire({ signal });
      taking.isWaiting = false;
      const [startedAt, { cpuMs }] = [this.#clock.monotonic(), sandbox.readUse()];
      try {
        const checkpoint = await takeCheckpoint(sandbox, { ...this.#options, signal });
        await shelf.save(rollout, one.id, { ...checkpoint, memory });
      } finally {
        this.#notBeforeMs = startedAt + budget.spend(sandbox.readUse().cpuMs - cpuMs);
      }
      one.isSaved = true;
      this.#dropOld();
    } catch (error) {
      this.#kept = this.#kept.filter((other) => other !== one);
      if (this.#current === one) this.#current = undefined;
      if (signal.aborted) return;
      const isLasting = !(error instanceof NoCheckpoint) || error.isLasting;
      if (isLasting) this.#isOver = true;
      if (!this.#hasSkipped || isLasting) log.info('checkpoint-skip', { rolloutId: rollout, isLasting, reason: messageOf(error) });
      this.#hasSkipped = true;
    }
  }

  #dropOld(): void {
    const { shelf, rollout } = this.#options;
    const newest = this.#kept.findLastIndex(({ isSaved, isLogged }) => isSaved && isLogged);
    for (const { id, isPinned } of this.#kept.splice(0, Math.max(0, newest))) if (!isPinned) shelf.drop(rollout, id).catch(() => {}); // the end of the rollout removes it
  }

  #guard(sandbox: Sandbox): Sandbox {
    const free: Uncharged = (wait) => wait();
    const wait = async (uncharged: Uncharged = free): Promise<void> => {
      const taking = this.#taking;
      if (taking?.isWaiting) taking.abort.abort(new Error('the agent acts'));
      if (taking) await uncharged(() => taking.done);
      this.#current = undefined;
      this.#isTouched = true;
    };
    return {
      ...sandbox,
      runShell: async (command, options) => wait(options.uncharged).then(() => sandbox.runShell(command, options)),
      runPython: async (code, options) => wait(options.uncharged).then(() => sandbox.runPython(code, options)),
      exec: async (argv, options) => wait(options.uncharged).then(() => sandbox.exec(argv, options)),
      openProgram: async (argv, options) => wait().then(() => sandbox.openProgram(argv, options)),
      listen: async (options) => wait().then(() => sandbox.listen(options)),
      writeFile: async (path, content, options) => wait().then(() => sandbox.writeFile(path, content, options)),
      copyFile: async (from, to, options) => wait().then(() => sandbox.copyFile(from, to, options)),
      makeFolder: async (path, options) => wait().then(() => sandbox.makeFolder(path, options)),
      readFolder: async (path, options) => wait().then(() => sandbox.readFolder(path, options)),
      upload: async (from, to, options) => wait().then(() => sandbox.upload(from, to, options)),
      download: async (from, to, options) => wait().then(() => sandbox.download(from, to, options)),
    };
  }
}
