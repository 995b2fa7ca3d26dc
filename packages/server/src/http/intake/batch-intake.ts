// Intake of batches: the request is checked for its fields, its scenario, each of its tasks and its task file before anything is
// stored.

import { randomUUID } from 'node:crypto';
import { Pace } from '@millrace/base/pace';
import { type BatchId, type BatchRequest, type BatchView, batchId, definedOf, RolloutError } from '@millrace/protocol';
import type { Scenario } from '@millrace/scenarios';
import type { BatchPlan, MoreTasks, Task } from '@millrace/store';
import { checkSource, findSourceFault } from '../../batches/draw-tasks.ts';
import { toBatchView } from '../../batches/group-view.ts';
import { leastRewards } from '../../batches/judge-group.ts';
import { toRecipe } from '../../batches/new-siblings.ts';
import { WebhookTargets } from '../../batches/webhook-target.ts';
import type { AppContext } from '../context/context.ts';
import { FaultCollector } from '../request/check.ts';
import { toDigest } from '../request/digest.ts';
import { checkAgent, checkIntake, checkTask, openPause, unknownScenario } from './intake.ts';

/** Group and rollout ids are derived from it, and have the same limit. */
const longestBatchId = 100;

export async function createBatch(request: BatchRequest, context: AppContext): Promise<BatchView> {
  checkIntake(context);
  checkPlan(request);
  checkWebhook(request, context);
  const scenario = context.scenarios.get(request.scenario);
  if (scenario === undefined) throw unknownScenario(['scenario'], request.scenario, context.scenarios);
  checkAgent(request.agent, ['agent'], context);
  const { id = batchId.parse(`b-${randomUUID()}`), tasks, webhook, closed, ...rest } = request;
  const digest = await new Pace(context.clock).run(toDigest({ ...rest, tasks, webhook, closed }));
  let plan: BatchPlan = { ...rest, scenario: scenario.name };
  // A repeated request must succeed even if the cursor of its task file has moved on.
  if ((await context.store.batch(id)) === undefined) {
    await checkTasks(tasks, scenario, context);
    await checkSource({ plan }, { ...context, files: context.taskFiles });
    if (request.source) plan = { ...plan, source_digest: await context.taskFiles.digest(request.source.file) };
  }
  const outcome = await context.store.createBatch({
    id,
    digest,
    plan,
    tasks,
    closed: closed ?? (tasks.length > 0 || request.source !== undefined),
    recipe: toRecipe(plan),
    ...definedOf({ webhook: webhook && definedOf(webhook) }),
  });
  if (outcome === 'conflict') throw new RolloutError('conflict', `batch ${id} exists with different content`, { details: { id } });
  return readBatchView(id, context);
}

export async function appendTasks(id: BatchId, more: MoreTasks, context: AppContext): Promise<BatchView> {
  checkIntake(context);
  const record = await context.store.batch(id);
  if (record === undefined) throw unknownBatch(id);
  const scenario = context.scenarios.get(record.plan.scenario);
  if (scenario === undefined) throw unknownScenario(['scenario'], record.plan.scenario, context.scenarios);
  await checkTasks(more.tasks, scenario, context);
  const outcome = await context.store.appendTasks(id, more);
  if (outcome === 'unknown') throw unknownBatch(id);
  if (typeof outcome === 'object')
    throw new RolloutError('conflict', `key: ${JSON.stringify(more.key)} was used for a different request: ${outcome.differs}`);
  if (outcome === 'ended') throw new RolloutError('conflict', `batch ${id} accepts no more tasks: it is closed or has ended`);
  return readBatchView(id, context);
}

export async function readBatchView(id: BatchId, { store, taskFiles }: Pick<AppContext, 'store' | 'taskFiles'>): Promise<BatchView> {
  const record = await store.batch(id);
  if (record === undefined) throw unknownBatch(id);
  const waiting = record.state === 'open' ? await findSourceFault(record.plan, taskFiles) : undefined;
  return { ...toBatchView(record), ...definedOf({ waiting }) };
}

export function unknownBatch(id: BatchId): RolloutError {
  return new RolloutError('not-found', `there is no batch ${id}`, { details: { reason: 'unknown' } });
}

/** Checks that involve more than one field. */
function checkPlan(request: BatchRequest): void {
  const { id, group_size: size, informative, min_samples, min_rewards, give_up_after } = request;
  const refuse = (message: string) => {
    throw new RolloutError('bad-request', message);
  };
  if (id !== undefined && id.length > longestBatchId) refuse(`id: a batch id has at most ${longestBatchId} characters`);
  if (min_samples !== undefined && min_samples > size) refuse(`min_samples: ${min_samples} is more than the group_size of ${size}`);
  if (min_rewards !== undefined && min_rewards > (min_samples ?? size))
    refuse(
      `min_rewards: ${min_rewards} is more than the ${min_samples === undefined ? 'group_size' : 'min_samples'} of ${min_samples ?? size}`,
    );
  if (leastRewards(request) > size || (informative.rule === 'rewards-differ' && size < 2))
    refuse('group_size: rewards of one sibling cannot differ; use at least 2, or the rule `any`');
  if (min_samples === 1 && informative.rule === 'rewards-differ') refuse('min_samples: one reward cannot differ; use at least 2');
  if (give_up_after === 1 && informative.rule === 'rewards-differ') refuse('give_up_after: one reward cannot differ; use at least 2');
  if (informative.rule === 'mean-within' && informative.above >= informative.below)
    refuse('informative.below: must be greater than informative.above');
  if (request.surplus === 'keep' && request.series === undefined)
    refuse('surplus: only the next batch of a series can use kept groups; set `series`');
  if (request.closed === true && request.tasks.length === 0 && request.source === undefined)
    refuse('tasks: a closed batch needs tasks or a source');
}

function checkWebhook({ webhook }: BatchRequest, { config }: AppContext): void {
  const fault = webhook && new WebhookTargets(config.webhookHosts).findFault(webhook.url);
  if (fault !== undefined) throw new RolloutError('bad-request', `webhook.url: ${fault}`);
}

export async function checkTasks(tasks: readonly Task[], scenario: Scenario, context: AppContext): Promise<void> {
  const faults = new FaultCollector();
  const pause = openPause(context.clock);
  for (const [index, task] of tasks.entries()) {
    const at = ['tasks', index];
    await faults.collect(at, () => checkTask({ scenario, task, at }, context));
    if (faults.isFull) break;
    await pause();
  }
  faults.throwIfAny();
}
