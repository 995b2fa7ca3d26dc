// Gets the trainer's groups: one batch of the service for each step, which samples tasks until enough groups are informative (DAPO's
// dynamic sampling) and stops the rest. The only file that knows how rollouts are requested.

import type { Client } from '@millrace/client';
import type { BatchInput, RolloutView, Trajectory } from '@millrace/protocol';
import type { HouseTask } from '../task/tasks.ts';

export interface SampledRollout {
  readonly view: RolloutView;
  readonly trajectory: Trajectory;
}

export interface GroupsRequest {
  /** The policy version that is served, which is also the step. */
  readonly version: number;
  readonly groupSize: number;
  /** Informative groups to deliver. */
  readonly target: number;
  /** The tasks to draw from: the batch ends short of its target when they run out. */
  readonly tasks: readonly HouseTask[];
  readonly maxTurns: number;
  readonly signal: AbortSignal;
}

export interface Harvest {
  /** The informative groups, to be trained on. */
  readonly groups: readonly (readonly SampledRollout[])[];
  /** Every rollout that ended since the last harvest, including uninformative ones. */
  readonly ended: readonly SampledRollout[];
  /** Groups that were sampled to the end. */
  readonly judged: number;
}

export class Groups {
  readonly #client: Client;
  readonly #seen = new Set<string>();

  constructor(client: Client) {
    this.#client = client;
  }

  async sample({ version, groupSize, target, tasks, maxTurns, signal }: GroupsRequest): Promise<Harvest> {
    const { batches } = this.#client;
    const request: BatchInput = {
      id: `step-${version}`,
      series: 'learn', // what is surplus in one step is kept for the next
      scenario: 'house',
      group_size: groupSize,
      target,
      tasks: tasks.map((task) => ({ ...task })),
      for_version: version,
      max_staleness: 1,
      sampling: { temperature: 1, max_tokens: 8 },
      limits: { max_turns: maxTurns, max_context_tokens: 160 },
    };
    const { id } = await batches.create(request, { signal });
    const groups: SampledRollout[][] = [];
    for await (const { group, trajectories } of batches.groups(id, { consumer: 'trainer', signal })) {
      groups.push(group.rollouts.flatMap((view, index) => (trajectories[index] ? [{ view, trajectory: trajectories[index] }] : [])));
    }
    const { delivered, uniform } = (await batches.get(id, { signal })).groups;
    return { groups, ended: await this.#readEnded(groups.flat(), signal), judged: (delivered ?? 0) + (uniform ?? 0) };
  }

  async #readEnded(delivered: readonly SampledRollout[], signal: AbortSignal): Promise<SampledRollout[]> {
    const known = new Map(delivered.map(({ view, trajectory }) => [view.id, trajectory]));
    const fresh: RolloutView[] = [];
    for await (const view of this.#client.list({ scenario: 'house', state: 'done', signal })) {
      if (this.#seen.has(view.id)) continue;
      this.#seen.add(view.id);
      fresh.push(view);
    }
    return await Promise.all(
      fresh.map(async (view) => ({ view, trajectory: known.get(view.id) ?? (await this.#client.trajectory(view.id, { signal })) })),
    );
  }
}

export function rewardOf({ view: { id, reward } }: SampledRollout): number {
  if (reward === null) throw new Error(`rollout ${id} has no reward`);
  return reward;
}
