// The books of a chaos run, once no fault is under way: everything that was acknowledged has ended, exactly once, with the tokens that
// the backends sent; every group reached its reader and its webhook; nothing is held by no one.

import { readFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { Client } from '@millrace/client';
import { isTerminal, type RolloutView } from '@millrace/protocol';
import { findWrongToken } from '../service/find-wrong-token.ts';
import { readPastEvents } from '../service/past-events.ts';
import { processesInSandboxesOf } from '../service/service.ts';
import { isWorker } from './faults/process-faults.ts';
import { batchTarget, type ChaosLoad, countLive } from './load.ts';
import { hungFile } from './scene/chaos-play.ts';
import type { Scene } from './scene/scene.ts';

/** Everything has ended if nothing changes for this long: the longest pause between two tries is a minute. */
const patienceMs = 150_000;

export interface ChaosBooks {
  /** Acknowledged, but unknown, or ended in a way that no fault explains; groups that a reader or the webhook did not get. */
  readonly lost: readonly string[];
  /** Ended or delivered more than once, or with two contents. */
  readonly doubled: readonly string[];
  /** In a stage although no live worker holds it; sandboxes and processes that outlived the service. */
  readonly leaked: readonly string[];
  /** Still waiting, although nothing has changed for a long time. */
  readonly stuck: readonly string[];
  /** Trajectories in which a token is not what the backend sent. */
  readonly wrong: readonly string[];
  readonly done: number;
  /** Ended without a reward because their verifier hung. */
  readonly verifierTimeouts: number;
  readonly attempts: number;
  readonly sampledTokens: number;
  readonly groups: number;
}

/** Waits for what is under way, reads all results, stops the service, and looks for leftovers. */
export async function checkBooks(scene: Scene, load: ChaosLoad): Promise<ChaosBooks> {
  const { client } = scene.service;
  await waitForEnds(scene, load);
  const views = await Array.fromAsync(client.list());
  const own = views.filter(({ id }) => load.rollouts.has(id));
  const ends = Map.groupBy(await readPastEvents(client, 'rollout-end'), ({ rollout_id }) => rollout_id);
  const hung = new Set(readHung(scene.controls));
  const isDone = ({ state, reward }: RolloutView) => state === 'done' && reward === 1;
  const hasHung = ({ id, failure }: RolloutView) => failure?.code === 'evaluate-timeout' && hung.has(id.replace('chaos-', ''));
  const ended = views.filter(({ state }) => isTerminal(state));
  const groups = await checkGroups(scene, load, new Map(views.map((view) => [view.id, view])));
  const live = views.filter(({ state }) => !isTerminal(state));
  const known = new Set<string>(own.map(({ id }) => id));
  return {
    lost: [
      ...[...load.rollouts].filter((id) => !known.has(id)).map((id) => `${id}: unknown`),
      ...own.filter((view) => isTerminal(view.state) && !isDone(view) && !hasHung(view)).map(describe),
      ...groups.lost,
    ],
    doubled: [
      ...ended.filter(({ id }) => ends.get(id)?.length !== 1).map(({ id }) => `${id}: ${ends.get(id)?.length ?? 0} ends`),
      ...groups.doubled,
    ],
    stuck: [...live.filter(({ state }) => state === 'queued').map(describe), ...groups.stuck],
    wrong: await findWrongTokens(client, own.filter(isDone)),
    done: own.filter(isDone).length,
    verifierTimeouts: own.filter(hasHung).length,
    attempts: own.reduce((sum, { attempt }) => sum + attempt, 0),
    sampledTokens: own.reduce((sum, { result }) => sum + (result?.tokens.sampled ?? 0), 0),
    groups: groups.delivered,
    leaked: [...live.filter(({ state }) => state !== 'queued').map(describe), ...(await findLeftovers(scene))],
  };
}

function describe({ id, state, attempt, failure }: RolloutView): string {
  return `${id}: ${state} in attempt ${attempt} ${failure ? JSON.stringify(failure) : ''}`;
}

function readHung(controls: string): string[] {
  try {
    return readFileSync(join(controls, hungFile), 'utf8').split('\n');
  } catch {
    return []; // no verifier has hung
  }
}

/** Until nothing is live and every webhook has got its groups, or nothing changes any more. */
async function waitForEnds({ service, receiver }: Scene, load: ChaosLoad): Promise<void> {
  let seen = '';
  for (let changedAt = performance.now(); performance.now() - changedAt < patienceMs; await pause(500)) {
    const { rollouts, last_event_id: last } = await service.client.status();
    const missing = [...load.batches].length * batchTarget - receiver.seen.size;
    if (countLive(rollouts) === 0 && missing <= 0) return;
    const now = JSON.stringify([rollouts, last, missing]);
    if (now !== seen) changedAt = performance.now();
    seen = now;
  }
}

async function findWrongTokens(client: Client, done: readonly RolloutView[]): Promise<string[]> {
  const wrong: string[] = [];
  const left = [...done];
  const check = async () => {
    for (let next = left.pop(); next; next = left.pop()) wrong.push(...findWrongToken(await client.trajectory(next.id)));
  };
  await Promise.all(Array.from({ length: 8 }, check));
  return wrong;
}

interface GroupBooks {
  readonly lost: readonly string[];
  readonly doubled: readonly string[];
  readonly stuck: readonly string[];
  readonly delivered: number;
}

async function checkGroups(
  { service: { client }, receiver }: Scene,
  load: ChaosLoad,
  views: ReadonlyMap<string, RolloutView>,
): Promise<GroupBooks> {
  const [lost, doubled, stuck]: string[][] = [[], [], []];
  const owners = new Map<string, string>();
  let delivered = 0;
  for (const id of load.batches) {
    const { state } = await client.batches.get(id);
    if (state === 'open') {
      stuck?.push(`${id}: open`);
      continue;
    }
    const groups = (await Array.fromAsync(client.batches.groups(id))).map(({ group }) => group);
    delivered += groups.length;
    const places = groups.map(({ seq }) => seq).join();
    const expected = Array.from({ length: batchTarget }, (_, index) => index + 1).join();
    if (state !== 'met' || places !== expected) lost?.push(`${id}: ${state} with groups ${places}`);
    for (const { seq, rollouts } of groups) {
      const place = `${id}/${seq}`;
      const digests = receiver.seen.get(place)?.size ?? 0;
      if (digests === 0) lost?.push(`${place}: never sent to its webhook`);
      if (digests > 1) doubled?.push(`${place}: sent with ${digests} contents`);
      for (const { id: rollout } of rollouts) {
        if (owners.has(rollout)) doubled?.push(`${rollout}: in ${place} and in ${owners.get(rollout)}`);
        owners.set(rollout, place);
        if (views.get(rollout)?.state !== 'done') lost?.push(`${rollout}: ${views.get(rollout)?.state} in ${place}`);
      }
    }
  }
  return { lost: lost ?? [], doubled: doubled ?? [], stuck: stuck ?? [], delivered };
}

async function findLeftovers({ service, machine }: Scene): Promise<string[]> {
  const workers = (await service.client.status()).workers.map(({ pid }) => pid);
  await machine?.processes.stop();
  await service.stop();
  const outlived = await Promise.all(workers.map(async (pid) => ((await isWorker(pid)) ? [`worker ${pid} outlived its server`] : [])));
  const left = await Promise.all([service.runDir, ...(machine ? [machine.processes.runDir] : [])].map(findLeftSandboxes));
  return [...new Set(outlived.flat()), ...left.flat()];
}

async function findLeftSandboxes(runDir: string): Promise<string[]> {
  const folders = (await readdir(runDir)).filter((name) => name.startsWith('sb-')).map((name) => `sandbox ${name}`);
  return [...folders, ...(await processesInSandboxesOf(runDir)).map((pid) => `process ${pid} in a sandbox`)];
}
