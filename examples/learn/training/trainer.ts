// The training loop, as a user would write it: a batch of groups from Millrace, a check of every token, a DAPO step, a swap of the weights.
// It uses nothing but the client.

import type { Client } from '@millrace/client';
import { copyNetwork, type Network } from '../model/network.ts';
import { makeRandom } from '../model/random.ts';
import type { PolicyServer } from '../serving/policy-server.ts';
import { makeTask } from '../task/tasks.ts';
import { overlongPenalty } from './dapo.ts';
import { Groups, type Harvest, rewardOf, type SampledRollout } from './groups.ts';
import { Learner, type Sample } from './learner.ts';
import { checkOnPolicy, flatten, type OnPolicyCount } from './on-policy.ts';

export interface TrainerOptions {
  readonly client: Client;
  readonly server: PolicyServer;
  readonly base: Network;
  readonly seed: number;
  /** Training ends with the first step whose mean reward is at least this, or after `mostSteps`. */
  readonly goal: number;
  readonly mostSteps: number;
  readonly signal: AbortSignal;
}

/** The results of one step, before the policy learns from them. */
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

export const recipe = { groupSize: 8, target: 8, mostGroups: 10, maxTurns: 4, rate: 0.004, epochs: 4, minibatch: 32 };
/** Large steps at first, smaller ones later. */
export const shareOf = (step: number) => Math.max(0.2, 1 - step / 12);
/** Two looks and an answer are twelve sampled tokens; anything longer costs. */
const overlong = { free: 14, most: 40 };
/** The training reward: the verifier's, minus a penalty for length. */
export const toReward = (reward: number, sampledTokens: number) => reward + overlongPenalty(sampledTokens, overlong);

export async function* train(options: TrainerOptions, count: OnPolicyCount): AsyncGenerator<Step> {
  const { client, server, base, seed, goal, mostSteps, signal } = options;
  const learner = new Learner(copyNetwork(base), { ...recipe, random: makeRandom('shuffle', seed) });
  const random = makeRandom('tasks', seed);
  const groups = new Groups(client);
  const versions = new Map([[0, base]]);
  await client.backends.join({ id: 'policy', url: server.url, policy_version: 0, logprobs_mode: 'processed' });
  const startedAt = performance.now();
  for (let step = 0; ; step++) {
    const tasks = Array.from({ length: recipe.mostGroups }, () => makeTask(random));
    const harvest = await groups.sample({ ...recipe, version: step, tasks, signal });
    for (const { trajectory } of harvest.ended) checkOnPolicy(trajectory, versions, count);
    const seen = toStep(harvest, { step, startedAt });
    yield seen;
    if (seen.reward >= goal || step + 1 >= mostSteps) return;
    if (harvest.groups.length > 0) await learner.update(harvest.groups.map(toSamples), shareOf(step));
    signal.throwIfAborted();
    const network = copyNetwork(learner.network);
    versions.set(step + 1, network);
    await swapWeights(options, { version: step + 1, network });
  }
}

/** Rollouts that are running wait, and continue with the new weights. */
async function swapWeights({ client, server, signal }: TrainerOptions, { version, network }: { version: number; network: Network }) {
  await client.policy.pause({ mode: 'wait' }, { signal });
  server.swap(network);
  await client.policy.resume({ policy_version: version }, { signal });
}

function toSamples(group: readonly SampledRollout[]): Sample[] {
  return group.map((sampled) => {
    const flat = flatten(sampled.trajectory);
    return { ...flat, reward: toReward(rewardOf(sampled), flat.places.length) };
  });
}

function toStep({ groups, ended, judged }: Harvest, { step, startedAt }: { step: number; startedAt: number }): Step {
  const reward = mean(ended.map(rewardOf));
  // In a group kept from the previous step, only the missing siblings have ended since then.
  const whole = [...Map.groupBy(ended, ({ view }) => view.group).values()].filter(({ length }) => length >= recipe.groupSize);
  const means = [reward, ...whole.map((siblings) => mean(siblings.map(rewardOf)))];
  return {
    step,
    rollouts: ended.length,
    reward,
    solved: mean(ended.map(({ view }) => (view.result?.score.solved === true ? 1 : 0))),
    lowest: Math.min(...means),
    highest: Math.max(...means),
    informative: groups.length,
    groups: judged,
    tokens: ended.reduce((sum, { view }) => sum + (view.result?.tokens.sampled ?? 0), 0),
    seconds: (performance.now() - startedAt) / 1000,
  };
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
