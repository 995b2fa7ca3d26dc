// Keeps one attempt's turns: after each, what it added goes to the log, and its sandbox to the disk, while the model samples the next.

import { randomUUID } from 'node:crypto';
import type { Ledger } from '@millrace/model';
import { definedOf, type Segment } from '@millrace/protocol';
import { Checkpointer, type Sandbox } from '@millrace/sandbox';
import type { Opened } from '@millrace/scenarios';
import type { Claim } from '@millrace/store';
import type { AgentTally } from '../../agent/agent-options.ts';
import type { LoopProgress } from '../../agent/loop-progress.ts';
import { type Continuing, type ResumePoint, saveMemory } from './continuation.ts';
import { packEntry } from './turn-entry.ts';

interface KeeperOptions {
  readonly continuing: Continuing;
  readonly claim: Claim;
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

export class TurnKeeper implements AsyncDisposable {
  readonly #options: KeeperOptions;
  readonly #checkpointer: Checkpointer | undefined;
  /** As the log has them. */
  #segments: readonly Segment[];
  #engines: number;
  #before: string | undefined;
  #after: number | undefined;

  constructor(options: KeeperOptions) {
    const { continuation, continuing, claim, sandbox, folders } = options;
    this.#options = options;
    const { shelf, slots, maxBytes, log } = continuing;
    this.#checkpointer = sandbox && folders && new Checkpointer({ sandbox, folders, rollout: claim.id, shelf, slots, maxBytes, log });
    this.#segments = [...(continuation?.ledger.segments ?? [])];
    this.#engines = continuation?.ledger.engines.length ?? 0;
    this.#before = continuation?.state.id;
    this.#after = continuation?.turn ?? 0;
  }

  /** For everything that acts in it. */
  get sandbox(): Sandbox | undefined {
    return this.#checkpointer?.sandbox;
  }

  note(progress: LoopProgress): void {
    const { sampler, tally, dateMs, setup, claim, opening, continuing, continuation } = this.#options;
    const { segments, engines, isContinued } = sampler.ledger;
    const kept = countSame(this.#segments, segments);
    const checkpoint = this.#checkpointer?.begin(saveMemory(opening));
    const id = randomUUID();
    const state = {
      id,
      ...definedOf({ before: this.#before, checkpoint }),
      ...{ setup, isContinued, progress, tally, dateMs },
      hasSandbox: this.#checkpointer !== undefined,
      keptSegments: kept,
      engines: engines.slice(this.#engines),
      runMs: this.#options.readRunMs(),
      cacheWaitMs: sampler.cacheWaitMs,
      times: continuation ? continuation.state.times + 1 : 0,
    };
    const body = packEntry({ state, segments: segments.slice(kept) });
    const onLogged = () => {
      if (checkpoint !== undefined) this.#checkpointer?.noteLogged(checkpoint);
    };
    continuing.turns.add({ claim, turn: tally.turns, body, onLogged, ...definedOf({ after: this.#after }) });
    this.#segments = [...segments];
    this.#engines = engines.length;
    this.#before = id;
    this.#after = undefined;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#checkpointer?.[Symbol.asyncDispose]();
  }
}

/** A later turn may replace what an earlier one added: the message of a turn that is continued moves to its end. */
function countSame(one: readonly Segment[], other: readonly Segment[]): number {
  const at = one.findIndex((segment, index) => segment !== other[index]);
  return at < 0 ? one.length : at;
}
