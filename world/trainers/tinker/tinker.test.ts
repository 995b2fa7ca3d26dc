// Advantages and training data made by the code of Tinker's cookbook, from PyPI, of rollouts of a real service.

import assert from 'node:assert/strict';
import { z } from 'zod';
import { openAdapterTrial } from '../scene/adapter-trial.ts';
import { readLedger } from '../scene/ledger.ts';
import { runs } from '../scene/trial-service.ts';

const numbers = z.array(z.number());
const report = z.object({
  ids: z.array(z.string()),
  rewards: numbers,
  errors: z.array(z.string()),
  advantages: numbers,
  places: numbers,
  data: z.array(z.object({ input: numbers, targets: numbers, logprobs: numbers, mask: numbers, advantages: numbers })),
});

const head = {
  trainer: 'Tinker',
  versions: { 'tinker-cookbook': '0.5.8', tinker: '0.36.0' },
  plug: 'A `TrajectoryGroup` of its cookbook, which `compute_advantages` and `assemble_training_data` take.',
  setup: 'from millrace_trainers.tinker import to_trajectory_group\ngroup = to_trajectory_group(source.run(jobs))',
  sampler: 'the `sampling` of your `RolloutSource`',
  limits: ['Nothing was sent to the Tinker service. Millrace cannot sample from it: sampling runs on your own LLM servers.'],
};

const { prove } = openAdapterTrial('tinker', head, {
  folder: import.meta.dirname,
  script: 'trajectory_group.py',
  python: { requirements: 'tinker.txt', torch: true },
  report,
  input: () => ({ tasks: runs }),
});

prove(
  ['rollouts', 'branches'],
  'each datum is a branch of the ledger, shifted by one, with its mask and logprobs',
  async ({ found, client }) => {
    const ledgers = await Promise.all(found.ids.slice(0, 3).map((id) => readLedger(client, id)));
    const branches = ledgers.flatMap((one) => one.branches);
    // What follows the last sampled token is not part of a datum.
    const ends = branches.map(({ mask }) => mask.lastIndexOf(1) + 1);
    assert.deepEqual(
      found.data.map(({ input, targets, mask, logprobs }) => ({ input, targets, mask, logprobs })),
      branches.map(({ ids, mask, logprobs }, index) => ({
        input: ids.slice(0, (ends[index] ?? 0) - 1),
        targets: ids.slice(1, ends[index]),
        mask: mask.slice(1, ends[index]),
        logprobs: logprobs.slice(1, ends[index]),
      })),
    );
    assert.deepEqual(found.places, [0, 1, 2, 2]);
  },
);

prove(
  ['advantages', 'branches'],
  'the advantages are those computed by hand; a rollout with two branches counts once',
  async ({ found }) => {
    const mean = (1 + 0.25 + 1) / 3;
    assert.deepEqual(found.rewards, [1, 0.25, 1]);
    const expected = [1 - mean, 0.25 - mean, 1 - mean];
    found.advantages.forEach((one, index) => {
      assert.ok(Math.abs(one - (expected[index] ?? 9)) < 1e-6);
    });
    for (const [index, { advantages, mask }] of found.data.entries()) {
      const own = expected[found.places[index] ?? 9] ?? 9;
      advantages.forEach((one, at) => {
        assert.ok(Math.abs(one - own * (mask[at] ?? 9)) < 1e-6);
      });
    }
  },
);

prove('unscored', 'a rollout without a reward is an error of the group, and changes no advantage', async ({ found }) => {
  assert.deepEqual(found.errors, ['evaluate-failed']);
});
