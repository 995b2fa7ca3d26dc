// Keeps one attempt's turns: after each, what it added goes to the log, and its sandbox to the disk, while the model samples the next. When the
// worker leaves, it saves the turn in flight as soon as that has ended, and the rollout goes back to the queue.

import { randomUUID } from 'node:crypto';
import { Deadline } from '@millrace/base/deadline';
import { raceSignal } from '@millrace/base/race';
import type { Ledger } from '@millrace/model';
import { definedOf, messageOf, type Segment, type Submission } from '@millrace/protocol';
import { Checkpointer, type Sandbox } from '@millrace/sandbox';
import type { Opened } from '@millrace/scenarios';
import type { Claim } from '@millrace/store';
import type { AgentTally } from '../../agent/agent-options.ts';
import type { LoopProgress } from '../../agent/loop-progress.ts';
import { type Continuing, type ResumePoint, saveMemory } from './continuation.ts';
import { packEntry, type TurnEntry } from './turn-entry.ts';
import type { NewTurn } from './turn-log-writer.ts';

/** That the worker is about to end. */
export interface WorkerLeave {
  readonly signal: AbortSignal;
  /** Ends the attempt; the rollout continues elsewhere. */
  handBack(): void;
}

interface KeeperOptions {
  readonly continuing: Continuing;
  readonly leaving?: WorkerLeave;
  readonly claim: Claim;
  readonly keep?: Submission['keep_checkpoints'];
  readonly opening: Opened;
  readonly setup: string;
  readonly sampler: { readonly ledger: Ledger; readonly cacheWaitMs: number };
  readonly tally: AgentTally;
  readonly dateMs: number;
  readonly readRunMs: () => number;
  readonly sandbox?: Sandbox;
  readonly folders?: readonly string[];
  readonly continuation?: ResumePoint;
}

const keepMs = 10_000;

interface NotedTurn {
  readonly entry: TurnEntry;
  readonly turn: Omit<NewTurn, 'body' | 'onLogged'>;
}

export class TurnKeeper implements AsyncDisposable {
  readonly #options: KeeperOptions;
  readonly #checkpointer: Checkpointer | undefined;
  /** As the log has them. */
  #segments: readonly Segment[];
  #engines: number;
  #before: string | undefined;
  #after: number | undefined;
  readonly #dueMs: number;
  /** Turns from before the attempt was old enough. */
  #early: NotedTurn[] = [];
  #last: NotedTurn | undefined;
  #keeping: Promise<unknown> = Promise.resolve();
  /** The newest turn whose state is on the disk, if that is to be kept. */
  #lastSaved: NotedTurn | undefined;

  constructor(options: KeeperOptions) {
    const { continuation, continuing, claim, sandbox, folders, leaving } = options;
    this.#options = options;
    this.#checkpointer = sandbox && folders && new Checkpointer({ ...continuing, sandbox, folders, rollout: claim.id });
    this.#segments = [...(continuation?.ledger.segments ?? [])];
    this.#engines = continuation?.ledger.engines.length ?? 0;
    this.#before = continuation?.state.id;
    this.#after = continuation?.turn ?? 0;
    this.#dueMs = continuing.clock.monotonic() + (continuation || this.#isKept ? 0 : continuing.restMs);
    leaving?.signal.addEventListener('abort', this.#onLeaving, { once: true });
  }

  get #isKept(): boolean {
    return (this.#options.keep ?? 'none') !== 'none';
  }

  /** For everything that acts in it. */
  get sandbox(): Sandbox | undefined {
    return this.#checkpointer?.sandbox;
  }

  /** After each turn. The promise, if there is one, is to be waited for: the worker leaves, and the attempt ends here if it is whole. */
  note(progress: LoopProgress): Promise<void> | undefined {
    const { claim, tally, continuing, leaving } = this.#options;
    const isDue = continuing.clock.monotonic() >= this.#dueMs;
    const isLeaving = isDue && leaving?.signal.aborted === true;
    const isKept = this.#isToKeep(tally.turns);
    const checkpoint = isDue ? this.#beginCheckpoint(isLeaving || isKept) : undefined;
    const entry = this.#toEntry(progress, checkpoint);
    const turn = { claim, turn: tally.turns, ...definedOf({ after: this.#after }) };
    this.#last = { entry, turn };
    this.#early.push(this.#last);
    if (isDue) this.#addEarly();
    this.#after = undefined;
    if (this.#isKept) this.#keeping = Promise.all([this.#keeping, this.#keep(this.#last, isKept)]);
    return isLeaving ? this.#leave(checkpoint) : undefined;
  }

  #isToKeep(turn: number): boolean {
    const { keep } = this.#options;
    return typeof keep === 'object' && turn % keep.every === 0;
  }

  /** Once its checkpoint is on the disk. */
  async #keep(last: NotedTurn, isKept: boolean): Promise<void> {
    const { checkpoint, hasSandbox } = last.entry.state;
    const isSaved = checkpoint !== undefined && (await this.#checkpointer?.isSaved(checkpoint)) === true;
    if (hasSandbox && !isSaved) return;
    if (isKept) await this.#markKept(last);
    else this.#lastSaved = last;
  }

  async #markKept(last: NotedTurn): Promise<void> {
    const { entry, turn } = last;
    const { checkpoint } = entry.state;
    if (checkpoint !== undefined) await this.#checkpointer?.pin(checkpoint);
    this.#add({ turn, entry: { ...entry, state: { ...entry.state, isKept: true } } });
  }

  #beginCheckpoint(isUrgent: boolean): string | undefined {
    return this.#checkpointer?.begin(saveMemory(this.#options.opening), { isUrgent });
  }

  #toEntry(progress: LoopProgress, checkpoint: string | undefined): TurnEntry {
    const { sampler, tally, dateMs, setup, claim, continuation } = this.#options;
    const { segments, engines, isContinued } = sampler.ledger;
    const kept = countSame(this.#segments, segments);
    const id = randomUUID();
    const state = {
      id,
      ...definedOf({ before: this.#before, checkpoint }),
      ...{ setup, isContinued, progress: { ...progress }, tally: { ...tally }, dateMs },
      rollout: claim.id,
      hasSandbox: this.#checkpointer !== undefined,
      keptSegments: kept,
      engines: engines.slice(this.#engines),
      runMs: this.#options.readRunMs(),
      cacheWaitMs: sampler.cacheWaitMs,
      times: continuation && !continuation.isFork ? continuation.state.times + 1 : 0,
    };
    this.#segments = [...segments];
    this.#engines = engines.length;
    this.#before = id;
    return { state, segments: segments.slice(kept) };
  }

  #addEarly(): void {
    for (const one of this.#early.splice(0)) this.#add(one);
  }

  #add({ entry, turn }: NotedTurn): void {
    const { checkpoint } = entry.state;
    const onLogged = () => {
      if (checkpoint !== undefined) this.#checkpointer?.noteLogged(checkpoint);
    };
    this.#options.continuing.turns.add({ ...turn, body: packEntry(entry), onLogged });
  }

  /** The model samples: the last turn may not be saved yet, and there will be none after it. */
  readonly #onLeaving = (): void => {
    const { continuing } = this.#options;
    if (!this.#last || !this.#checkpointer?.isAtBoundary || continuing.clock.monotonic() < this.#dueMs) return;
    const checkpoint = this.#beginCheckpoint(true);
    const { entry, turn } = this.#last;
    this.#addEarly();
    if (checkpoint !== undefined) void this.#share(checkpoint);
    if (checkpoint === undefined || checkpoint === entry.state.checkpoint) return;
    this.#add({ turn, entry: { ...entry, state: { ...entry.state, checkpoint } } });
  };

  /** A sandbox that cannot be saved goes on until the worker ends. */
  async #leave(checkpoint: string | undefined): Promise<void> {
    const isWhole = !this.#checkpointer || (checkpoint !== undefined && (await this.#share(checkpoint)));
    if (isWhole) this.#options.leaving?.handBack();
  }

  /** Whether it is on the disk. */
  async #share(checkpoint: string): Promise<boolean> {
    if (!(await this.#checkpointer?.isSaved(checkpoint))) return false;
    await this.#checkpointer?.share(checkpoint, { keepsAll: this.#isKept });
    return true;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#options.leaving?.signal.removeEventListener('abort', this.#onLeaving);
    await this.#checkpointer?.[Symbol.asyncDispose]();
    if (this.#isKept) await this.#endKeeping();
  }

  /** Bounded in time: a shared folder may not answer. The log takes nothing of the attempt after its run. */
  async #endKeeping(): Promise<void> {
    const { keep, continuing } = this.#options;
    using deadline = new Deadline('keeping a checkpoint', keepMs, continuing.clock);
    const ended = this.#keeping.then(async () => {
      if (keep === 'last' && this.#lastSaved) await this.#markKept(this.#lastSaved);
      await continuing.turns.flush();
    });
    await raceSignal(ended, deadline.signal).catch((error) => {
      continuing.log.warn('checkpoint-share-failed', { rolloutId: this.#options.claim.id, error: messageOf(error) });
    });
  }
}

/** A later turn may replace what an earlier one added: the message of a turn that is continued moves to its end. */
function countSame(one: readonly Segment[], other: readonly Segment[]): number {
  const at = one.findIndex((segment, index) => segment !== other[index]);
  return at < 0 ? one.length : at;
}
