// Forks of a rollout: new rollouts that share its turns up to one that was kept. They are ordinary submissions, which the store gives the shared
// turns in the transaction that accepts them.

import { randomUUID } from 'node:crypto';
import {
  type ForkReply,
  type ForkRequest,
  groupId,
  isTerminal,
  RolloutError,
  type RolloutId,
  rolloutId,
  type SavedTurn,
  type Submission,
  sampling,
} from '@millrace/protocol';
import type { NewRollout } from '@millrace/store';
import { toSavedTurns } from '@millrace/worker';
import type { AppContext } from '../context/context.ts';
import { check } from '../request/check.ts';
import { checkIntake, submitAll, toNewRollout, toRolloutId, unknownRollout } from './intake.ts';

export async function listTurns(id: RolloutId, { store }: AppContext): Promise<SavedTurn[]> {
  if ((await store.get(id)) === undefined) throw unknownRollout(id);
  return toSavedTurns(await store.savedTurns(id));
}

interface ForkCall {
  readonly request: ForkRequest;
  readonly caller: string;
}

export async function forkRollout(id: RolloutId, { request, caller }: ForkCall, context: AppContext): Promise<ForkReply> {
  checkIntake(context);
  const source = await context.store.get(id);
  if (source === undefined) throw unknownRollout(id);
  const saved = toSavedTurns(await context.store.savedTurns(id));
  const turn = chooseTurn(saved, { id, asked: request.turn, hasEnded: isTerminal(source.state) });
  const name = request.id ?? toRolloutId(`r-${randomUUID()}`);
  await check(rolloutId, `${name}.${request.n}`, { at: ['id'] });
  const { submission } = source;
  const own = await check(sampling, { ...submission.sampling, ...request.sampling }, { at: ['sampling'] });
  const forked = { ...submission, sampling: own, group: source.group ?? groupId.parse(id), fork: { rollout: id, turn } };
  const forks = Array.from({ length: request.n }, (_, index) => toFork(forked, toRolloutId(`${name}.${index + 1}`)));
  return { ...(await submitAll(forks, context, caller)), turn };
}

interface ChosenTurn {
  readonly id: RolloutId;
  readonly asked: number | undefined;
  readonly hasEnded: boolean;
}

/** A turn of a rollout without a sandbox is whole as soon as it is saved. */
function chooseTurn(saved: readonly SavedTurn[], { id, asked, hasEnded }: ChosenTurn): number {
  const kept = saved.filter((one) => one.kept);
  const chosen = asked === undefined ? kept.at(-1) : kept.find((one) => one.turn === asked);
  if (chosen) return chosen.turn;
  const has = kept.length === 0 ? 'none' : kept.map((one) => one.turn).join(', ');
  const why = hasEnded ? 'it has ended' : 'it has not come further, or its sandbox could not be saved there';
  const what = `rollout ${id} cannot be forked after ${asked === undefined ? 'any turn' : `turn ${asked}`}; kept turns: ${has}; ${why}`;
  throw new RolloutError('conflict', `${what}: submit it with keep_checkpoints to keep some`, {
    details: { kept: kept.map((one) => one.turn) },
  });
}

function toFork({ id: _, ...forked }: Submission, id: RolloutId): NewRollout {
  return toNewRollout(id, forked);
}
