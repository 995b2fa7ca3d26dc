// Builders for batches in store tests.

import { type BatchId, type BatchInput, batchId, batchRequest, definedOf, type GroupId, groupId } from '@millrace/protocol';
import { type NewBatch, type NewGroup, type Task, toRecipe } from '@millrace/server';
import { makeRollout } from './bed.ts';

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
