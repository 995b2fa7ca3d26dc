// `node examples/learn/simulate.ts --seeds 10`: the same policy, tasks, rewards and training without the service, one process for many
// seeds. Shows how much of the demo is luck: the curve of each seed, and whether it reached the goal.

import { parseArgs } from 'node:util';
import type { Network } from './model/network.ts';
import { makeBaseModel } from './model/pretrain.ts';
import { makeRandom, type Random } from './model/random.ts';
import { generate } from './model/sampler.ts';
import { callClose, callOpen, idOf, marks, places, textOf } from './model/vocabulary.ts';
import { type HouseTask, makeTask, scoreVisit } from './task/tasks.ts';
import { isInformative } from './training/dapo.ts';
import { Learner, type Sample } from './training/learner.ts';
import { recipe, shareOf, toReward } from './training/trainer.ts';

interface Visit extends Sample {
  readonly score: number;
}

/** The mean reward that ends a run, and the number of rollouts after which no step starts. */
const [goal, limit] = [0.91, 1000];
const ids = (...words: readonly string[]) => words.map(idOf);

/** Plays one rollout, reading the notes from the task instead of a sandbox. */
async function visit(network: Network, task: HouseTask, random: Random): Promise<Visit> {
  const tokenIds = ids(marks.user, 'Who ', 'is ', 'in ', 'the ', task.start, '?', marks.end, marks.assistant);
  const [sampled, recorded, seen]: [number[], number[], string[]] = [[], [], []];
  let answer = '';
  for (let turn = 0; turn < recipe.maxTurns; turn++) {
    const options = { maxTokens: 8, temperature: 1, stopTokenIds: ids(marks.end), random };
    const { tokenIds: said, logprobs } = await generate(network, tokenIds, options);
    said.forEach((id, i) => {
      sampled.push(tokenIds.push(id) - 1);
      recorded.push(logprobs[i] ?? 0);
    });
    const words = said.map(textOf);
    const place = places.find((name) => words.join('') === [...callOpen, name, callClose, marks.end].join(''));
    if (place === undefined) {
      answer = words.slice(0, -1).join('');
      break;
    }
    seen.push(place);
    tokenIds.push(...ids(marks.tool, task.rooms[place] ?? '', marks.end, marks.assistant));
  }
  const { reward } = scoreVisit(task, { seen, answer });
  return { tokenIds: Int32Array.from(tokenIds), places: sampled, recorded, score: reward, reward: toReward(reward, sampled.length) };
}

/** The mean reward of each step, and the number of rollouts. */
async function simulate(seed: number): Promise<{ readonly rewards: readonly number[]; readonly rollouts: number }> {
  const learner = new Learner(makeBaseModel(seed), { ...recipe, random: makeRandom('shuffle', seed) });
  const [tasks, random] = [makeRandom('tasks', seed), makeRandom('visits', seed)];
  const rewards: number[] = [];
  let rollouts = 0;
  for (let step = 0; rollouts < limit; step++) {
    const groups: Visit[][] = [];
    const informative: Visit[][] = [];
    while (informative.length < recipe.target && groups.length < recipe.mostGroups) {
      const task = makeTask(tasks);
      const group: Visit[] = [];
      for (let i = 0; i < recipe.groupSize; i++) group.push(await visit(learner.network, task, random));
      groups.push(group);
      if (isInformative(group.map(({ score }) => score))) informative.push(group);
    }
    const scores = groups.flat().map(({ score }) => score);
    rollouts += scores.length;
    rewards.push(scores.reduce((sum, score) => sum + score, 0) / scores.length);
    if ((rewards.at(-1) ?? 0) >= goal) break;
    if (informative.length > 0) await learner.update(informative, shareOf(step));
  }
  return { rewards, rollouts };
}

const { values } = parseArgs({ options: { seeds: { type: 'string', default: '10' } } });
let reached = 0;
for (let seed = 1; seed <= Number(values.seeds); seed++) {
  const { rewards, rollouts } = await simulate(seed);
  reached += (rewards.at(-1) ?? 0) >= goal ? 1 : 0;
  console.log(`seed ${seed}: ${String(rollouts).padStart(4)} rollouts: ${rewards.map((reward) => reward.toFixed(2)).join(' ')}`);
}
console.log(`${reached} of ${values.seeds} seeds reach ${goal} within ${limit} rollouts.`);
process.exitCode = reached >= 0.9 * Number(values.seeds) ? 0 : 1;
