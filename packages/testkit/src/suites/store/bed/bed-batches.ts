// Builders for batches and evaluations in store tests.

import {
  type BatchId,
  type BatchInput,
  batchId,
  batchRequest,
  definedOf,
  type EvaluationInput,
  evaluationId,
  evaluationRequest,
  type Failure,
  type GroupId,
  groupId,
} from '@millrace/protocol';
import { toRecipe } from '@millrace/server';
import type { ClaimedRollout, NewBatch, NewEvaluation, NewGroup, Store, Task } from '@millrace/store';
import { makeResult, makeRollout, makeTrajectory, moveUpTo } from './bed.ts';

export function makeBatch(id: string, fields: Partial<BatchInput> & { readonly count?: number } = {}): NewBatch {
  const { count = 4, ...rest } = fields;
  const given = { scenario: 'math', group_size: 2, target: 2, tasks: makeTasks(count), ...rest };
  const { id: _, tasks, webhook, closed = true, ...plan } = batchRequest.parse(given);
  return {
    id: batchId.parse(id),
    digest: JSON.stringify(given),
    plan,
    tasks,
    closed,
    recipe: toRecipe(plan),
    ...definedOf({ webhook: webhook && definedOf(webhook) }),
  };
}

export function makeTasks(count: number): Task[] {
  return Array.from({ length: count }, (_, index) => ({ question: `${index}`, answer: '2' }));
}

/** The group that a batch starts after `begun` others, with `count` siblings, from its queue. */
export function makeGroup(batch: string, begun: number, count = 2): NewGroup {
  const id = toGroup(`${batch}:${begun}`);
  const rollouts = Array.from({ length: count }, (_, index) => makeRollout(`${id}:${index}`, { group: id }));
  return { id, batch: toBatch(batch), begun, task: { question: `${begun}`, answer: '2' }, rollouts, from: { kind: 'queue' } };
}

export function toBatch(text: string): BatchId {
  return batchId.parse(text);
}

export function toGroup(text: string): GroupId {
  return groupId.parse(text);
}

/** The id of the evaluation in tests. */
export const e = evaluationId.parse('e');

export function makeEvaluation(
  fields: Partial<EvaluationInput> & { readonly count?: number; readonly correctAt?: number } = {},
): NewEvaluation {
  const { count = 3, correctAt = 1, ...rest } = fields;
  const given = { scenario: 'math', n: 2, tasks: Array.from({ length: count }, (_, index) => ({ question: `${index}` })), ...rest };
  const { id: _, tasks, ...plan } = evaluationRequest.parse(given);
  return { id: e, digest: JSON.stringify(given), plan, tasks: tasks.map((task) => ({ task, correctAt })) };
}

/** Begins the next tasks, with two samples each. */
export async function begin(store: Store, begun: number, tasks: number): Promise<boolean> {
  const samples = Array.from({ length: tasks }, (_, index) =>
    [0, 1].map((number) => makeRollout(`e:${begun + index}:${number}`, { group: `e:${begun + index}` })),
  );
  return store.beginTasks(e, { begun, samples });
}

/** Ends a sample with a reward. False when the claim is outdated. */
export async function finish(store: Store, claim: ClaimedRollout, reward: number, failure?: Failure): Promise<boolean> {
  await moveUpTo(store, claim, 'evaluate');
  const trajectory = makeTrajectory(claim.id, claim.attempt);
  return store.finish(claim, { state: 'done', result: makeResult(reward), trajectory, ...definedOf({ failure }) });
}
