// From where an attempt continues: the last turn of the attempts before it after which everything was saved. Without one it begins again.

import type { Clock } from '@millrace/base/clock';
import type { Log } from '@millrace/base/log';
import { Slots } from '@millrace/base/slots';
import type { Ledger } from '@millrace/model';
import { messageOf, rolloutId } from '@millrace/protocol';
import type { Checkpoint, CheckpointShelf } from '@millrace/sandbox';
import type { Opened } from '@millrace/scenarios';
import type { ClaimedRollout, LoggedTurn, WorkerStore } from '@millrace/store';
import { joinEntries, type TurnEntry, type TurnState, unpackEntry } from './turn-entry.ts';
import { TurnLogWriter } from './turn-log-writer.ts';

/** What a worker continues rollouts with. */
export interface Continuing {
  readonly store: Pick<WorkerStore, 'loggedTurns' | 'get'>;
  readonly turns: TurnLogWriter;
  readonly shelf: CheckpointShelf;
  /** How many checkpoints it takes at the same time. */
  readonly slots: Slots;
  /** For the files of one checkpoint. */
  readonly maxBytes: number;
  readonly log: Log;
}

/** How many checkpoints a worker takes at the same time, and the largest: what they take of its memory. */
const checkpointSlots = 4;
const mostCheckpointBytes = 64 << 20;

export function openContinuing({
  store,
  shelf,
  log,
}: {
  readonly store: WorkerStore;
  readonly shelf: CheckpointShelf;
  readonly log: Log;
}): Continuing {
  return { store, shelf, log, turns: new TurnLogWriter(store), slots: new Slots(checkpointSlots), maxBytes: mostCheckpointBytes };
}

/** Checkpoints that are younger may belong to a rollout that is about to be claimed. */
const leastAgeMs = 10 * 60_000;

/** Removes what rollouts left that ended elsewhere. */
export async function sweepCheckpoints(continuing: Continuing | undefined, clock: Clock): Promise<void> {
  if (!continuing) return;
  const { shelf, store } = continuing;
  const hasEnded = async (rollout: string) => {
    const id = rolloutId.safeParse(rollout);
    const record = id.success ? await store.get(id.data) : undefined;
    return record === undefined || record.endedAtMs !== undefined;
  };
  await shelf.sweep(hasEnded, clock.now() - leastAgeMs);
}

export interface ResumePoint {
  readonly turn: number;
  readonly ledger: Ledger;
  readonly state: TurnState;
  /** For a rollout with a sandbox. */
  readonly checkpoint?: Checkpoint;
  /** Turns after it that are sampled again. */
  readonly turnsAgain: number;
}

/** After this many attempts in a row that added no turn, the state itself may be what ends them. */
const mostIdleAttempts = 3;

interface FindOptions {
  /** What earlier attempts logged. */
  readonly turns: readonly LoggedTurn[];
  readonly setup: string;
  readonly hasSandbox: boolean;
}

/** Undefined if the rollout begins again. */
export async function findResumePoint(
  { shelf, log }: Continuing,
  claimed: ClaimedRollout,
  { turns, setup, hasSandbox }: FindOptions,
): Promise<ResumePoint | undefined> {
  const lastAttempt = turns.at(-1)?.attempt ?? 0;
  if (claimed.attempt - lastAttempt > mostIdleAttempts) return undefined;
  const entries: TurnEntry[] = [];
  try {
    for (const [index, { turn, body }] of turns.entries()) {
      const entry = unpackEntry(body);
      const { before, setup: its, hasSandbox: had } = entry.state;
      if (turn !== index + 1 || before !== entries.at(-1)?.state.id || its !== setup || had !== hasSandbox) break;
      entries.push(entry);
    }
    for (let turn = entries.length; turn > 0; turn -= 1) {
      const { state } = entries[turn - 1] ?? {};
      const checkpoint = state?.checkpoint === undefined ? undefined : await shelf.load(claimed.id, state.checkpoint);
      if (!state || (hasSandbox && !checkpoint)) continue;
      const ledger = joinEntries(entries.slice(0, turn));
      return { turn, ledger, state, turnsAgain: turns.length - turn, ...(checkpoint && { checkpoint }) };
    }
  } catch (error) {
    log.warn('rollout-continue-failed', { rolloutId: claimed.id, attempt: claimed.attempt, error: messageOf(error) });
  }
  return undefined;
}

/** Whether all that the agent's part consists of can be saved: no state of the scenario's own, and tools that say what they keep. */
export function canContinue({ state, respond, tools }: Opened): boolean {
  return state === undefined && respond === undefined && tools.every(({ memory }) => memory !== undefined);
}

export function saveMemory({ tools }: Pick<Opened, 'tools'>): string {
  return JSON.stringify(Object.fromEntries(tools.map(({ spec, memory }) => [spec.name, memory?.save()])));
}

/** Throws if the memory is not that of these tools. */
export function loadMemory({ tools }: Pick<Opened, 'tools'>, saved: string): void {
  const memories = new Map(Object.entries(JSON.parse(saved)));
  for (const { spec, memory } of tools) memory?.load(memories.get(spec.name));
}
