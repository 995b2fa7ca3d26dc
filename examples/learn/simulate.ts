// `node examples/learn/simulate.ts --seeds 10`: the same policy, tasks, rewards and training without the service, one process for many
// seeds. It tells how much of the demo is luck: for each seed the curve, and whether it got to the goal.

import { parseArgs } from 'node:util';
import { isInformative } from './dapo.ts';
import { Learner, type Sample } from './learner.ts';
import type { Network } from './network.ts';
import { makeBaseModel } from './pretrain.ts';
import { makeRandom, type Random } from './random.ts';
import { generate } from './sampler.ts';
import { type HouseTask, makeTask, scoreVisit } from './tasks.ts';
import { recipe, shareOf, toReward } from './trainer.ts';
import { animals, callClose, callOpen, idOf, marks, places, textOf } from './vocabulary.ts';

interface Visit extends Sample {
  readonly score: number;
}

const ids = (...words: readonly string[]) => words.map(idOf);

/** What a rollout does, with the sandbox's notes read straight from the task. */
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

async function simulate(seed: number, goal: number, mostSteps: number): Promise<{ rewards: number[]; rollouts: number; tokens: number }> {
  const learner = new Learner(makeBaseModel(seed), { ...recipe, random: makeRandom('shuffle', seed) });
  const [tasks, random] = [makeRandom('tasks', seed), makeRandom('visits', seed)];
  const rewards: number[] = [];
  let [rollouts, tokens] = [0, 0];
  for (let step = 0; step < mostSteps; step++) {
    const groups: Visit[][] = [];
    const informative: Visit[][] = [];
    while (informative.length < recipe.target && groups.length < recipe.mostGroups) {
      const task = makeTask(tasks);
      const group: Visit[] = [];
      for (let i = 0; i < recipe.groupSize; i++) group.push(await visit(learner.network, task, random));
      groups.push(group);
      if (isInformative(group.map(({ score }) => score))) informative.push(group);
    }
    const all = groups.flat();
    rollouts += all.length;
    tokens += all.reduce((sum, { places: { length } }) => sum + length, 0);
    rewards.push(all.reduce((sum, { score }) => sum + score, 0) / all.length);
    if ((rewards.at(-1) ?? 0) >= goal) break;
    if (informative.length > 0) await learner.update(informative, shareOf(step));
  }
  return { rewards, rollouts, tokens };
}

const { values } = parseArgs({
  options: { seeds: { type: 'string', default: '10' }, first: { type: 'string', default: '1' }, goal: { type: 'string', default: '0.91' }, steps: { type: 'string', default: '20' } },
});
let reached = 0;
for (let seed = Number(values.first); seed < Number(values.first) + Number(values.seeds); seed++) {
  const startedAt = performance.now();
  const { rewards, rollouts } = await simulate(seed, Number(values.goal), Number(values.steps));
  const last = rewards.at(-1) ?? 0;
  reached += last >= Number(values.goal) ? 1 : 0;
  console.log(`seed ${seed}: ${rollouts} rollouts, ${((performance.now() - startedAt) / 1000).toFixed(0)} s: ${rewards.map((reward) => reward.toFixed(2)).join(' ')}`);
}
console.log(`${reached} of ${values.seeds} seeds reach ${values.goal}; guessing would give ${(1 / animals.length).toFixed(2)}`);
