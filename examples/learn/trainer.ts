// The training loop, as a user would write it: sample groups through Millrace, check them, take a DAPO step, serve the new weights.
// It talks to the service through its client alone.

import type { Client } from '@millrace/client';
import { isInformative, overlongPenalty } from './dapo.ts';
import { type Group, rewardOf, sampleGroups } from './groups.ts';
import { Learner, type Sample } from './learner.ts';
import { copyNetwork, type Network } from './network.ts';
import { checkOnPolicy, flatten, type OnPolicyCount } from './on-policy.ts';
import type { PolicyServer } from './policy-server.ts';
import { makeRandom } from './random.ts';
import { makeTask } from './tasks.ts';

export interface TrainerOptions {
  readonly client: Client;
  readonly server: PolicyServer;
  readonly base: Network;
  readonly seed: number;
  /** Training ends with the first step whose mean reward is at least this, or after `mostSteps`. */
  readonly goal: number;
  readonly mostSteps: number;
}

/** What one step has seen, before it learned from it. */
export interface Step {
  readonly step: number;
  readonly rollouts: number;
  /** The mean over all rollouts, informative or not. */
  readonly reward: number;
  readonly solved: number;
  /** The mean rewards of the lowest and the highest group. */
  readonly lowest: number;
  readonly highest: number;
  readonly informative: number;
  readonly groups: number;
  readonly tokens: number;
  readonly seconds: number;
}

export const recipe = { groupSize: 8, target: 8, mostGroups: 10, maxTurns: 4, rate: 0.003, epochs: 4, minibatch: 16 };
/** Large steps at first, smaller ones as there is less left to learn. */
export const shareOf = (step: number) => Math.max(0.2, 1 - step / 12);
/** Two looks and an answer are twelve sampled tokens; wandering costs from there on. */
const overlong = { free: 14, most: 40 };

export async function* train(options: TrainerOptions, count: OnPolicyCount): AsyncGenerator<Step> {
  const { client, server, seed, goal, mostSteps } = options;
  const learner = new Learner(options.base, { ...recipe, random: makeRandom('shuffle', seed) });
  const tasks = makeRandom('tasks', seed);
  const versions = new Map<number, Network>();
  const startedAt = performance.now();
  for (let step = 0; step < mostSteps; step++) {
    await serveWeights({ client, server }, { version: step, network: learner.network, versions });
    const request = { ...recipe, name: `step-${step}`, nextTask: () => makeTask(tasks), seed: 10_000 * step };
    const groups = await sampleGroups(client, request);
    for (const { trajectories } of groups) for (const trajectory of trajectories) checkOnPolicy(trajectory, versions, count);
    const seen = toStep(groups, { step, startedAt });
    yield seen;
    if (seen.reward >= goal) return;
    const samples = groups.map(toSamples).filter((group) => isInformative(group.map(({ reward }) => reward)));
    if (samples.length > 0) await learner.update(samples, shareOf(step));
  }
}

interface Weights {
  readonly version: number;
  readonly network: Network;
  /** All that were ever served, for the check. */
  readonly versions: Map<number, Network>;
}

/** A copy is served: the learner goes on changing its own. */
async function serveWeights({ client, server }: Pick<TrainerOptions, 'client' | 'server'>, { version, network, versions }: Weights) {
  const served = copyNetwork(network);
  versions.set(version, served);
  const url = server.serve(version, served);
  await client.backends.join({ id: 'policy', url, policy_version: version, logprobs_mode: 'processed' });
}

function toSamples({ views, trajectories }: Group): Sample[] {
  return trajectories.map((trajectory, index) => {
    const flat = flatten(trajectory);
    const view = views[index];
    const reward = view ? rewardOf(view) : 0;
    return { ...flat, reward: reward + overlongPenalty(flat.places.length, overlong) };
  });
}

function toStep(groups: readonly Group[], { step, startedAt }: { step: number; startedAt: number }): Step {
  const means = groups.map(({ views }) => mean(views.map(rewardOf)));
  const views = groups.flatMap((group) => group.views);
  return {
    step,
    rollouts: views.length,
    reward: mean(views.map(rewardOf)),
    solved: mean(views.map(({ result }) => (result?.score.solved === true ? 1 : 0))),
    lowest: Math.min(...means),
    highest: Math.max(...means),
    informative: groups.filter((group) => isInformative(group.views.map(rewardOf))).length,
    groups: groups.length,
    tokens: views.reduce((sum, { result }) => sum + (result?.tokens.sampled ?? 0), 0),
    seconds: (performance.now() - startedAt) / 1000,
  };
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
