// Scenarios of a real service as environments of GEM, from PyPI: its own registry and vector environment play them, and the test is the policy.

import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { qwen3Folder, renderCall } from '@millrace/testkit';
import { z } from 'zod';
import { openPython } from '../../engines/python-packages.ts';
import { gymPackages } from '../../scenarios/gym-packages.ts';
import { openAdapterTrial } from '../scene/adapter-trial.ts';
import { readLedger } from '../scene/ledger.ts';
import { runs } from '../scene/trial-service.ts';

const step = z.object({
  observation: z.string(),
  reward: z.number(),
  terminated: z.boolean(),
  truncated: z.boolean(),
});
const episode = z.object({ id: z.string(), opening: z.string(), steps: z.array(step), ids: z.array(z.number()) });
const report = z.object({
  episodes: z.object({ right: episode, wrong: episode }),
  unscored: z.object({ error: z.string(), chosen: step }),
  truncated: step,
  cancelled: z.string(),
  vector: z.array(z.number()),
});

const head = {
  trainer: 'GEM',
  versions: { 'gem-llm': '0.1.0' },
  plug: 'A `gem.Env`: the trainer samples text, and the scenario answers from its sandbox, with its tools and its verifier. The other way round, environments of GEM are tasks of the scenario [`gym`](gym.md).',
  setup: [
    'from millrace_trainers.gem import MillraceEnv',
    'gem.register("millrace:shell", "millrace_trainers.gem:MillraceEnv", tasks=tasks, tokenizer=tokenizer, scenario="shell")',
    'env = gem.make("millrace:shell")',
  ].join('\n'),
  sampler: 'the trainer samples itself',
  limits: [
    'Observations are text in the chat template of the model: use them without a template of the trainer. `tokenizer` is that of the service.',
    'The trainer becomes the backend of the service, which should have no other one. Rollouts in its ledger have logprobs of 0: train on what the trainer sampled.',
    'An episode without a reward raises `UnscoredRollout`, unless `unscored_reward` is given.',
  ],
};

const look = `I look first.\n${renderCall('look', { shelf: 'top' })}`;
const finish = (answer: string) => renderCall('finish', { answer });

/** Only this package, next to those of GEM. */
const tokenizers = await findSitePackages(await openPython({ name: 'tokenizers', packages: [], alone: ['tokenizers==0.22.2'] }));

const { prove } = openAdapterTrial('gem', head, {
  folder: import.meta.dirname,
  script: 'play.py',
  python: () => openPython(gymPackages),
  report,
  joins: false,
  input: () => ({
    tokenizer: join(qwen3Folder(), 'tokenizer.json'),
    tasks: runs,
    look,
    right: finish('five'),
    wrong: finish('six'),
  }),
  env: () => ({ MILLRACE_TOKENIZERS: tokenizers }),
});

async function findSitePackages(python: string): Promise<string> {
  const library = join(dirname(python), '..', 'lib');
  return join(library, readdirSync(library).find((name) => name.startsWith('python')) ?? '', 'site-packages');
}

prove(
  'rollouts',
  'observations and actions joined are the ids of the ledger, and the reward is that of the verifier',
  async ({ found, client }) => {
    const { right, wrong } = found.episodes;
    assert.match(right.opening, /How many things\?/);
    assert.match(right.steps[0]?.observation ?? '', /are 3 books and 2 "cups"/);
    for (const { id, ids } of [right, wrong]) {
      const [branch] = (await readLedger(client, id)).branches;
      assert.deepEqual(ids, branch?.ids);
    }
    const ends = [right, wrong].map(({ steps }) => steps.map(({ reward, terminated, truncated }) => [reward, terminated, truncated]));
    const middle = [0, false, false];
    assert.deepEqual(ends, [
      [middle, [1, true, false]],
      [middle, [0.25, true, false]],
    ]);
  },
);

prove(
  'unscored',
  'an episode without a reward raises and names the reason, or ends truncated with the reward that was chosen for it',
  async ({ found }) => {
    assert.match(found.unscored.error, /evaluate-failed: .*no ruler today/);
    assert.deepEqual(found.unscored.chosen, { observation: '', reward: -1, terminated: false, truncated: true });
  },
);

prove(
  'rollouts',
  'a limit truncates the episode, closing one cancels its rollout, and a vector environment of GEM plays several at once',
  async ({ found, client }) => {
    assert.deepEqual([found.truncated.terminated, found.truncated.truncated], [false, true]);
    assert.equal((await client.get(found.cancelled)).state, 'cancelled');
    assert.deepEqual(found.vector, [1, 0.25, 1]);
  },
);
