// One look at one open batch: settles the groups that are decided, replaces failed siblings, takes over what the series has
// kept, begins new groups where there is room, and ends the batch when nothing more can come. All it knows is in the store.

import { isTerminal, type RolloutId } from '@millrace/protocol';
import type { BatchPlan, KeptGroup, OpenBatch, OpenGroup, Sibling } from '../store/batch-store.ts';
import type { Store } from '../store/store.ts';
import { isTooOld, mayBegin } from './admission.ts';
import { type DrawDeps, drawTasks } from './draw-tasks.ts';
import { isInformative, judgeGroup } from './judge-group.ts';
import { makeSiblings, toGroupId } from './new-siblings.ts';
import { countToBegin, type RefillView } from './refill.ts';

export type FillDeps = DrawDeps;

/** What was read just before: a batch with its open groups, the load of the stages, and the policy version that is present. */
export interface Moment {
  readonly batch: OpenBatch;
  readonly open: readonly OpenGroup[];
  readonly load: RefillView['load'];
  readonly present: number | undefined;
}

/** Answers whether something changed, so that another look is worth while. */
export async function fillBatch(moment: Moment, deps: FillDeps): Promise<boolean> {
  return (await settleGroups(moment, deps.store)) || (await refillBatch(moment, deps));
}

async function settleGroups(moment: Moment, store: Store): Promise<boolean> {
  const changes = moment.open.map((group) => settle(group, moment, store));
  return (await Promise.all(changes)).includes(true);
}

async function settle(group: OpenGroup, { batch, present }: Moment, store: Store): Promise<boolean> {
  const { plan } = batch;
  const view = viewSiblings(group, plan);
  const base = { group: group.id, batch: batch.id, members: [] };
  if (isTooOld(view.versions, plan, present)) return store.settleGroup({ ...base, state: 'stale' });
  const verdict = judgeGroup({ rewards: view.rewards, mayCome: view.pending + view.replaceable }, plan);
  if (verdict.kind === 'deliver') return store.settleGroup({ ...base, state: 'delivered', members: view.rewarded.slice(0, verdict.count) });
  if (verdict.kind !== 'wait') return store.settleGroup({ ...base, state: verdict.kind });
  if (view.replaceable === 0) return false;
  const task = await store.groupTask(group.id);
  if (task === undefined) return false;
  const siblings = { batch: batch.id, group: group.id, task, plan, from: group.siblings.length, count: view.replaceable };
  return store.replaceSiblings(group.id, makeSiblings(siblings));
}

interface SiblingsView {
  readonly rewarded: readonly RolloutId[];
  readonly rewards: readonly number[];
  readonly versions: readonly number[];
  /** Those from which a reward may still come. */
  readonly pending: number;
  readonly missing: number;
  /** Of the missing ones, those that may be sampled in place of failed ones. */
  readonly replaceable: number;
}

function viewSiblings(group: OpenGroup, plan: BatchPlan): SiblingsView {
  const rewarded = group.siblings.filter((sibling) => sibling.reward !== undefined).slice(0, plan.group_size);
  const pending = group.siblings.filter(isPending).length;
  const missing = Math.max(0, plan.group_size - rewarded.length - pending);
  const allowed = plan.failures === 'replace' ? Math.max(0, plan.max_replacements - group.replacements) : 0;
  return {
    rewarded: rewarded.map(({ id }) => id),
    rewards: rewarded.flatMap(({ reward }) => reward ?? []),
    versions: rewarded.flatMap(({ firstVersion }) => firstVersion ?? []),
    pending,
    missing,
    replaceable: Math.min(missing, allowed),
  };
}

function isPending({ state, stopping }: Sibling): boolean {
  return !isTerminal(state) && !stopping;
}

/** Begins groups where there is room; ends the batch when nothing is open and nothing can be begun. */
async function refillBatch(moment: Moment, deps: FillDeps): Promise<boolean> {
  const { batch, open, load, present } = moment;
  const { store } = deps;
  const { plan } = batch;
  if (!mayBegin(plan, present)) return false;
  const most = Math.min(countToBegin(toRefillView(batch, open, load)), (plan.max_open_groups ?? Number.POSITIVE_INFINITY) - open.length);
  if (most <= 0) return false;
  const { taken, renewed } = await takeKept(moment, most, store);
  if (renewed > 0) return true;
  const left = Math.min(most - taken, (plan.max_groups ?? Number.POSITIVE_INFINITY) - batch.begun);
  const begun = left > 0 ? await beginGroups(batch, left, deps) : 0;
  if (taken + begun > 0) return true;
  const over = open.length === 0 && (batch.closed || left <= 0) && most > 0;
  return over && (await store.endBatch(batch.id, 'short'));
}

function toRefillView(batch: OpenBatch, open: readonly OpenGroup[], load: RefillView['load']): RefillView {
  const { plan } = batch;
  return {
    target: plan.target,
    delivered: batch.delivered,
    rejected: batch.uniform + batch.failed,
    groupSize: plan.group_size,
    open: open.map((group) => {
      const { rewards } = viewSiblings(group, plan);
      const sure = plan.informative.rule !== 'mean-within';
      return { rewards: sure ? rewards.length : 0, assured: sure && isInformative(rewards, plan.informative) };
    }),
    load,
    ...(batch.before ? { before: batch.before } : {}),
  };
}

/** How many surplus groups of the series are this batch's now, and of how many the task stands in its line. */
async function takeKept({ batch, present }: Moment, most: number, store: Store): Promise<{ taken: number; renewed: number }> {
  let [taken, renewed] = [0, 0];
  if (batch.plan.series === undefined) return { taken, renewed };
  for (const group of await store.keptGroups(batch.id, most)) {
    const tooOld = isTooOld(viewSiblings(group, batch.plan).versions, batch.plan, present);
    if (tooOld) renewed += Number(await store.renewGroup(batch.id, group.id));
    else if (await store.takeGroup(batch.id, group.id, makeMissing(batch, group))) taken += 1;
  }
  return { taken, renewed };
}

function makeMissing(batch: OpenBatch, group: KeptGroup) {
  const { plan } = batch;
  const { missing } = viewSiblings(group, plan);
  return makeSiblings({ batch: batch.id, group: group.id, task: group.task, plan, from: group.siblings.length, count: missing });
}

async function beginGroups(batch: OpenBatch, most: number, deps: FillDeps): Promise<number> {
  const { plan } = batch;
  const writes: Promise<boolean>[] = [];
  for await (const { task, from } of drawTasks(batch, most, deps)) {
    const begun = batch.begun + writes.length;
    const group = toGroupId(batch.id, begun);
    const rollouts = makeSiblings({ batch: batch.id, group, task, plan, from: 0, count: plan.group_size });
    writes.push(deps.store.beginGroup({ id: group, batch: batch.id, begun, task, rollouts, from }));
  }
  return (await Promise.all(writes)).filter(Boolean).length;
}
