// From where an attempt continues: the last turn of the attempts before it after which everything was saved. Without one it begins again.

import type { Clock } from '@millrace/base/clock';
import type { Log } from '@millrace/base/log';
import type { Ledger } from '@millrace/model';
import { messageOf, RolloutError, rolloutId, type SavedTurn, type Submission } from '@millrace/protocol';
import { type Checkpoint, CheckpointBudget, type CheckpointShelf } from '@millrace/sandbox';
import type { Opened } from '@millrace/scenarios';
import type { ClaimedRollout, LoggedTurn, WorkerStore } from '@millrace/store';
import { joinEntries, type TurnEntry, type TurnState, unpackEntry } from './turn-entry.ts';
import { TurnLogWriter } from './turn-log-writer.ts';

/** What a worker continues rollouts with. */
export interface Continuing {
  readonly store: Pick<WorkerStore, 'loggedTurns' | 'get'>;
  readonly turns: TurnLogWriter;
  readonly shelf: CheckpointShelf;
  readonly budget: CheckpointBudget;
  /** For the files of one checkpoint. */
  readonly maxBytes: number;
  /** Nothing is saved of an attempt that began later than this ago: to begin again costs less. */
  readonly restMs: number;
  readonly clock: Clock;
  readonly log: Log;
}

const mostCheckpointBytes = 64 << 20;
const defaultRestMs = 5000;

export function openContinuing({
  store,
  shelf,
  clock,
  log,
  restMs = defaultRestMs,
  budget = new CheckpointBudget(clock),
}: Pick<Continuing, 'shelf' | 'clock' | 'log'> &
  Partial<Pick<Continuing, 'restMs' | 'budget'>> & { readonly store: WorkerStore }): Continuing {
  return { store, shelf, clock, log, turns: new TurnLogWriter(store), budget, maxBytes: mostCheckpointBytes, restMs };
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
    return record === undefined || (record.endedAtMs !== undefined && !keepsTurns(record.submission));
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
  /** It is where a fork begins: no attempt of its own added a turn. */
  readonly isFork: boolean;
}

/** After this many attempts in a row that added no turn, the state itself may be what ends them. Some may only have been handed back. */
const mostIdleAttempts = 6;

interface FindOptions {
  /** What earlier attempts logged. */
  readonly turns: readonly LoggedTurn[];
  readonly setup: string;
  readonly hasSandbox: boolean;
}

/** Undefined if the rollout begins again. A fork never does: it throws. */
export async function findResumePoint(
  continuing: Continuing,
  claimed: ClaimedRollout,
  found: FindOptions,
): Promise<ResumePoint | undefined> {
  const { fork } = claimed.submission;
  try {
    const point = await findPoint(continuing, claimed, found);
    if (point || !fork) return point;
  } catch (error) {
    const ids = { rolloutId: claimed.id, attempt: claimed.attempt };
    continuing.log.warn('rollout-continue-failed', { ...ids, error: messageOf(error) });
    if (!fork) return undefined;
  }
  const what = `it is a fork of ${fork.rollout} after turn ${fork.turn}, whose state this machine does not have`;
  throw new RolloutError('sandbox-start-failed', `${what}: forks run where the checkpoint is, with the same model, template and tools`);
}

async function findPoint({ shelf }: Continuing, claimed: ClaimedRollout, found: FindOptions): Promise<ResumePoint | undefined> {
  const least = claimed.submission.fork?.turn ?? 0;
  const { turns, hasSandbox } = found;
  const isIdle = claimed.attempt - (turns.at(-1)?.attempt ?? 0) > mostIdleAttempts;
  if (isIdle && least === 0) return undefined;
  const entries = readChain(isIdle ? turns.slice(0, least) : turns, found);
  for (let turn = entries.length; turn >= Math.max(1, least); turn -= 1) {
    const { state } = entries[turn - 1] ?? {};
    const checkpoint = state?.checkpoint === undefined ? undefined : await shelf.load(state.rollout, state.checkpoint);
    if (!state || (hasSandbox && !checkpoint)) continue;
    const ledger = joinEntries(entries.slice(0, turn), least);
    return { turn, ledger, state, turnsAgain: turns.length - turn, isFork: turn === least, ...(checkpoint && { checkpoint }) };
  }
  return undefined;
}

/** The entries from the first turn on that follow each other and that this attempt can go on from. */
function readChain(turns: readonly LoggedTurn[], { setup, hasSandbox }: FindOptions): TurnEntry[] {
  const entries: TurnEntry[] = [];
  for (const [index, { turn, body }] of turns.entries()) {
    const entry = unpackEntry(body);
    const { before, setup: its, hasSandbox: had } = entry.state;
    if (turn !== index + 1 || before !== entries.at(-1)?.state.id || its !== setup || had !== hasSandbox) break;
    entries.push(entry);
  }
  return entries;
}

/** What the log says of each turn. */
export function toSavedTurns(turns: readonly LoggedTurn[]): SavedTurn[] {
  return turns.map(({ turn, attempt, body }) => {
    const { isKept = false, checkpoint = null, rollout } = unpackEntry(body).state;
    return { turn, attempt, kept: isKept, checkpoint, rollout: rolloutId.parse(rollout) };
  });
}

/** Whether its turns and checkpoints outlive it. */
export function keepsTurns({ keep_checkpoints: keep = 'none' }: Pick<Submission, 'keep_checkpoints'>): boolean {
  return keep !== 'none';
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
