// Explains why rollouts make no progress and what to do about it, in short sentences for people. Empty when nothing is missing.

import type { BackendView, MachineView, PolicyView } from '@millrace/protocol';
import type { ClassLoad, OpenBatch } from '@millrace/store';
import { mayBegin } from '../../batches/admission.ts';
import { findMissing } from './waiting.ts';

interface HintSources {
  readonly liveWorkers: number;
  readonly backends: readonly BackendView[];
  readonly policy: PolicyView;
  readonly batches: readonly OpenBatch[];
  readonly classes: readonly ClassLoad[];
  readonly machines: readonly MachineView[];
  /** Why the store is full; undefined while it is not. */
  readonly storeFull: string | undefined;
}

export function findHints(sources: HintSources): string[] {
  const { liveWorkers, backends, policy, batches, storeFull } = sources;
  return [
    ...(storeFull === undefined ? [] : [`the store is full: ${storeFull}`]),
    ...(liveWorkers === 0 ? ['no worker is running: start one with `millrace worker`'] : []),
    ...findClassHints(sources),
    ...findBackendHints(backends),
    ...(policy.state === 'running' ? [] : [`the policy is ${policy.state}: resume it with \`millrace policy resume\``]),
    ...batches.flatMap((batch) => findBatchHints(batch, toCurrentVersion(backends, policy))),
  ];
}

/** Work that no live machine can take. */
function findClassHints({ classes, machines }: HintSources): string[] {
  const queued = new Map<string, number>();
  for (const one of classes) {
    const missing = one.queued > 0 && one.requires ? findMissing(one.requires, machines) : undefined;
    if (missing !== undefined) queued.set(missing, (queued.get(missing) ?? 0) + one.queued);
  }
  return [...queued].map(([missing, n]) => `${n} ${n === 1 ? 'rollout waits' : 'rollouts wait'}: ${missing}`);
}

function findBackendHints(backends: readonly BackendView[]): string[] {
  if (backends.length === 0) return ['no backend has joined: add one with `millrace backend add URL`'];
  if (backends.some(({ state, health }) => state === 'up' && health === 'ok')) return backends.filter(isSilent).map(describeSilence);
  return [`no backend takes rollouts: ${backends.map(describeBackend).join(', ')}`];
}

const silentMs = 60_000;

/** Calls run, and no token arrives. Engines that send all tokens at the end of a call look like this too. */
function isSilent({ call_progress }: BackendView): boolean {
  if (call_progress === null) return false;
  const { oldest_call_ms, last_token_ms } = call_progress;
  return oldest_call_ms > silentMs && (last_token_ms ?? oldest_call_ms) > silentMs;
}

function describeSilence({ id }: BackendView): string {
  return `${id} has sent no token for more than a minute, and calls run there: it is slow, overloaded or hangs; look at its log`;
}

function describeBackend({ id, state, health, last_error: error }: BackendView): string {
  if (health === 'ok') return `${id} is ${state}`;
  return `${id} is broken${error === null ? '' : ` (${error.message})`}`;
}

function findBatchHints(batch: OpenBatch, currentVersion: number | undefined): string[] {
  const { id, plan, open, waiting, closed } = batch;
  if (!mayBegin(plan, currentVersion)) {
    const needed = (plan.for_version ?? 0) - plan.max_staleness;
    return [`batch ${id} waits for policy version ${needed}: the current version is ${currentVersion}`];
  }
  const isOutOfTasks = open === 0 && waiting === 0 && !closed && plan.source === undefined;
  return isOutOfTasks ? [`batch ${id} has no tasks: append tasks, or close it`] : [];
}

/** As the batch keeper computes it. */
function toCurrentVersion(backends: readonly BackendView[], { policy_version: version }: PolicyView): number | undefined {
  return backends.length === 0 ? undefined : Math.max(version, ...backends.map((backend) => backend.policy_version));
}
