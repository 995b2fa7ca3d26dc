// Where the trainer's groups come from: tasks are sampled by siblings until enough groups are informative (DAPO's dynamic sampling).
// The one file that knows how rollouts are asked for.

import type { Client } from '@millrace/client';
import type { RolloutView, SubmissionInput, Trajectory } from '@millrace/protocol';
import { isInformative } from './dapo.ts';
import type { HouseTask } from './tasks.ts';

export interface Group {
  readonly views: readonly RolloutView[];
  readonly trajectories: readonly Trajectory[];
}

export interface GroupsRequest {
  /** Ids begin with it. */
  readonly name: string;
  readonly groupSize: number;
  /** Informative groups that are wanted. */
  readonly target: number;
  /** Groups that are sampled for them at most. */
  readonly mostGroups: number;
  readonly nextTask: () => HouseTask;
  readonly seed: number;
  readonly maxTurns: number;
}

/** All groups that were sampled, also those that teach nothing. */
export async function sampleGroups(client: Client, request: GroupsRequest): Promise<Group[]> {
  const { target, mostGroups } = request;
  const groups: Group[] = [];
  for (;;) {
    const missing = target - groups.filter(({ views }) => isInformative(views.map(rewardOf))).length;
    const wave = Math.min(missing, mostGroups - groups.length);
    if (wave <= 0) return groups;
    groups.push(...(await sampleWave(client, request, { from: groups.length, count: wave })));
  }
}

async function sampleWave(client: Client, request: GroupsRequest, { from, count }: { from: number; count: number }): Promise<Group[]> {
  const names = Array.from({ length: count }, (_, index) => `${request.name}-${from + index}`);
  const submissions = names.flatMap((group, index) => toSiblings(group, { ...request, seed: request.seed + 100 * (from + index) }));
  const members = new Map<string, Promise<{ view: RolloutView; trajectory: Trajectory }>[]>(names.map((name) => [name, []]));
  for await (const view of await client.run(submissions)) {
    // A group that lacks a sibling would have other advantages: better no step than a wrong one.
    if (view.state !== 'done') throw new Error(`rollout ${view.id} failed: ${view.failure?.code}: ${view.failure?.message}`);
    members.get(`${view.group}`)?.push(client.trajectory(view.id).then((trajectory) => ({ view, trajectory })));
  }
  return await Promise.all([...members.values()].map(toGroup));
}

function toSiblings(group: string, { groupSize, nextTask, seed, maxTurns }: GroupsRequest): SubmissionInput[] {
  const { start, rooms } = nextTask();
  return Array.from({ length: groupSize }, (_, sibling) => ({
    id: `${group}-${sibling}`,
    group,
    scenario: 'house',
    task: { start, rooms },
    sampling: { temperature: 1, max_tokens: 8, seed: seed + sibling },
    limits: { max_turns: maxTurns, max_context_tokens: 160 },
  }));
}

/** Siblings in the order of their ids, not of their ends: the same seed is the same run. */
async function toGroup(members: readonly Promise<{ view: RolloutView; trajectory: Trajectory }>[]): Promise<Group> {
  const ordered = (await Promise.all(members)).sort((a, b) => a.view.id.localeCompare(b.view.id, 'en', { numeric: true }));
  return { views: ordered.map(({ view }) => view), trajectories: ordered.map(({ trajectory }) => trajectory) };
}

export function rewardOf({ id, reward }: RolloutView): number {
  if (reward === null) throw new Error(`rollout ${id} has no reward`);
  return reward;
}
