// Advances one open batch: settles decided groups, replaces failed siblings, carries over surplus groups of the series, starts new
// groups when there is room, and ends the batch when nothing more can come. All state is in the store.

import { type Blame, definedOf, isTerminal, type RolloutId } from '@millrace/protocol';
import type { BatchPlan, OpenBatch, OpenGroup, Sibling, Store, SurplusGroup } from '@millrace/store';
import { isTooOld, mayBegin } from './admission.ts';
import { type DrawDeps, drawTasks } from './draw-tasks.ts';
import { isInformative, judgeGroup } from './judge-group.ts';
import { makeSiblings, toGroupId } from './new-siblings.ts';
import { countToBegin, type RefillView } from './refill.ts';

/** The pause between two probes of a paused batch. */
const probeMs = 10_000;

export type FillDeps = DrawDeps;

/** What was just read: a batch with its open groups, the load of the stages, and the current policy version. */
interface BatchSnapshot {
  readonly batch: OpenBatch;
  readonly open: readonly OpenGroup[];
  readonly load: RefillView['load'];
  readonly currentVersion: number | undefined;
  readonly nowMs: number;
}

/** Returns whether something changed, so that another round may change more. */
export async function fillBatch(snapshot: BatchSnapshot, deps: FillDeps): Promise<boolean> {
  return (await settleGroups(snapshot, deps.store)) || (await refillBatch(snapshot, deps));
}

async function settleGroups(snapshot: BatchSnapshot, store: Store): Promise<boolean> {
  const changes = snapshot.open.map((group) => settle(group, snapshot, store));
  return (await Promise.all(changes)).includes(true);
}

async function settle(group: OpenGroup, { batch, currentVersion }: BatchSnapshot, store: Store): Promise<boolean> {
  const { plan } = batch;
  const view = viewSiblings(group, plan);
  const base = { group: group.id, batch: batch.id, members: [] };
  if (isTooOld(view.versions, plan, currentVersion)) return store.settleGroup({ ...base, state: 'stale' });
  const verdict = judgeGroup({ rewards: view.rewards, mayCome: view.pending + view.replaceable }, plan);
  if (verdict.kind === 'deliver') return store.settleGroup({ ...base, state: 'delivered', members: view.rewarded.slice(0, verdict.count) });
  if (verdict.kind === 'failed') return store.settleGroup({ ...base, state: 'failed', ...definedOf({ blameless: findBlameless(group) }) });
  if (verdict.kind !== 'wait') return store.settleGroup({ ...base, state: verdict.kind });
  if (view.replaceable === 0) return false;
  const task = await store.groupTask(group.id);
  if (task === undefined) return false;
  const siblings = { batch: batch.id, group: group.id, task, plan, from: group.siblings.length, count: view.replaceable };
  return store.replaceSiblings(group.id, makeSiblings(siblings));
}

/** The blames that are about the task or what the agent did with it. */
const taskBlames: ReadonlySet<Blame> = new Set(['task', 'policy', 'caller']);

/** Why the group failed, unless one of its failures is blamed on the task. */
function findBlameless({ siblings }: OpenGroup): string | undefined {
  const failures = siblings.flatMap(({ failure }) => failure ?? []);
  const [first] = failures;
  if (!first || failures.some(({ blame }) => taskBlames.has(blame))) return undefined;
  return `${first.code}: ${first.message}`;
}

interface SiblingsView {
  readonly rewarded: readonly RolloutId[];
  readonly rewards: readonly number[];
  readonly versions: readonly number[];
  /** Siblings that may still get a reward. */
  readonly pending: number;
  readonly missing: number;
  /** The missing siblings that may be replaced. */
  readonly replaceable: number;
}

function viewSiblings(group: OpenGroup, plan: BatchPlan): SiblingsView {
  const scored = group.siblings.flatMap((sibling) => {
    const reward = sibling.reward ?? findPenalty(sibling, plan);
    return reward === undefined ? [] : [{ ...sibling, reward }];
  });
  const rewarded = scored.slice(0, plan.group_size);
  const pending = group.siblings.filter(isPending).length;
  const missing = Math.max(0, plan.group_size - rewarded.length - pending);
  const allowed = plan.failures === 'replace' ? Math.max(0, plan.max_replacements - group.replacements) : 0;
  return {
    rewarded: rewarded.map(({ id }) => id),
    rewards: rewarded.map(({ reward }) => reward),
    versions: rewarded.flatMap(({ firstVersion }) => firstVersion ?? []),
    pending,
    missing,
    replaceable: Math.min(missing, allowed),
  };
}

/** The reward of a failure that the policy caused, in a batch that penalises it. Without a trajectory there is nothing to train on. */
function findPenalty({ failure, hasTrajectory }: Sibling, { policy_failures, penalty }: BatchPlan): number | undefined {
  return policy_failures === 'penalise' && failure?.blame === 'policy' && hasTrajectory ? penalty : undefined;
}

function isPending({ state, stopping }: Sibling): boolean {
  return !isTerminal(state) && !stopping;
}

/** Starts groups when there is room; ends the batch when nothing is open and nothing can start. */
async function refillBatch(snapshot: BatchSnapshot, deps: FillDeps): Promise<boolean> {
  const { batch, open, load, currentVersion } = snapshot;
  const { store } = deps;
  const { plan } = batch;
  if (!mayBegin(plan, currentVersion)) return false;
  const wanted = batch.paused ? countProbes(snapshot) : countToBegin(toRefillView(batch, open, load));
  const most = Math.min(wanted, (plan.max_open_groups ?? Number.POSITIVE_INFINITY) - open.length);
  if (most <= 0) return false;
  const { taken, renewed } = await takeSurplus(snapshot, most, store);
  if (renewed > 0) return true;
  const left = Math.min(most - taken, (plan.max_groups ?? Number.POSITIVE_INFINITY) - batch.begun);
  const begun = left > 0 ? await beginGroups(batch, left, deps) : 0;
  if (taken + begun > 0) return true;
  const over = open.length === 0 && (batch.closed || left <= 0) && most > 0;
  return over && (await store.endBatch(batch.id, 'short', { begun: batch.begun, waiting: batch.waiting }));
}

/** A paused batch starts one group at a time to find out whether groups succeed again. */
function countProbes({ batch, open, nowMs }: BatchSnapshot): number {
  const sinceMs = nowMs - (batch.paused?.failedAtMs ?? 0);
  return open.length === 0 && (sinceMs < 0 || sinceMs >= probeMs) ? 1 : 0;
}

function toRefillView(batch: OpenBatch, open: readonly OpenGroup[], load: RefillView['load']): RefillView {
  const { plan } = batch;
  return {
    target: plan.target,
    delivered: batch.delivered,
    rejected: batch.uniform,
    groupSize: plan.group_size,
    open: open.map((group) => {
      const { rewards } = viewSiblings(group, plan);
      const sure = plan.informative.rule !== 'mean-within';
      return { rewards: sure ? rewards.length : 0, assured: sure && isInformative(rewards, plan.informative) };
    }),
    load,
    ...definedOf({ before: batch.before }),
  };
}

/** Carries over surplus groups of the series: `taken` now belong to this batch, the tasks of `renewed` are in its queue. */
async function takeSurplus(
  { batch, currentVersion }: BatchSnapshot,
  most: number,
  store: Store,
): Promise<{ taken: number; renewed: number }> {
  let [taken, renewed] = [0, 0];
  if (batch.plan.series === undefined) return { taken, renewed };
  for (const group of await store.surplusGroups(batch.id, most)) {
    const tooOld = isTooOld(viewSiblings(group, batch.plan).versions, batch.plan, currentVersion);
    if (tooOld) renewed += Number(await store.renewGroup(batch.id, group.id));
    else if (await store.takeGroup(batch.id, group.id, makeMissing(batch, group))) taken += 1;
  }
  return { taken, renewed };
}

function makeMissing(batch: OpenBatch, group: SurplusGroup) {
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
