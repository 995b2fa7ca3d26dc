// Agent Lightning 0.3 from PyPI: its store server, its runner and both of its adapters, against a real service.

import assert from 'node:assert/strict';
import { z } from 'zod';
import { checkSettings, settingsReport } from '../bed/settings.ts';
import { openAdapterTrial } from '../scene/adapter-trial.ts';
import { readLedger, turnsOf } from '../scene/ledger.ts';
import { runs } from '../scene/trial-service.ts';

const turn = z.object({ prompt: z.array(z.number()), completion: z.array(z.number()), logprobs: z.array(z.number()) });
const rollout = z.object({
  status: z.string(),
  reward: z.number().nullable(),
  id: z.string().nullable(),
  turns: z.array(turn),
  proxied: z.array(turn.omit({ logprobs: true })),
  rewards: z.array(z.array(z.number().nullable())),
});
const report = z.object({
  rollouts: z.object({ right: rollout, wrong: rollout, branched: rollout, unscored: rollout }),
  step: rollout,
  settings: settingsReport,
});

const head = {
  trainer: 'Agent Lightning',
  versions: { agentlightning: '0.3.0' },
  plug: 'A runner of its store (0.3), a controller of its gateway (1.0, without `--store`), or an agent for its trainer, `fit(MillraceAgent(), tasks)`.',
  setup: [
    'python -m millrace_trainers.agent_lightning http://127.0.0.1:4747 --store                                   # 0.3',
    `python -m millrace_trainers.agent_lightning http://127.0.0.1:8080 --sampling '{"temperature": 1}'   # 1.0, with its key in AGL_KEY`,
  ].join('\n'),
  limits: [
    'Version 1.0 needs Python 3.12 and has a gateway instead of the store: leave out `--store`, and pass what its `default_proxy` samples with as `--sampling`. It is tested by `npm run test:versions`.',
    'Its pause of the gateway does not reach Millrace, which calls the LLM servers itself: use `client.policy.pause()` around new weights.',
    '0.3 trains without logprobs, though the triplets have them.',
  ],
};

const { prove, settle } = openAdapterTrial('agent-lightning', head, {
  folder: import.meta.dirname,
  script: 'store.py',
  python: { requirements: 'agent-lightning.txt', torch: false },
  report,
  input: () => ({ tasks: runs }),
});

prove(
  ['rollouts', 'branches'],
  'the triplets of both adapters are the turns of the ledger, branches included',
  async ({ found, client }) => {
    const { right, wrong, branched } = found.rollouts;
    for (const { id, turns, proxied, reward } of [right, wrong, branched, found.step]) {
      const ledger = await readLedger(client, id ?? '');
      const expected = ledger.branches.flatMap(turnsOf);
      assert.deepEqual(turns, expected);
      assert.deepEqual(
        proxied,
        expected.map(({ prompt, completion }) => ({ prompt, completion })),
      );
      assert.equal(reward, ledger.reward);
    }
    assert.deepEqual([right.reward, wrong.reward, branched.reward], [1, 0.25, 1]);
    assert.equal(branched.turns.length, 4);
  },
);

prove('rollouts', 'the reward belongs to the last turn, and the parameters of the LLM arrive', async ({ found, trial }) => {
  const { right, wrong, branched } = found.rollouts;
  settle(
    checkSettings(
      trial.backend,
      found.settings,
      [right, wrong, branched].map(({ id }) => id ?? ''),
    ),
  );
  assert.deepEqual(found.rollouts.wrong.rewards, [
    [null, 0.25],
    [null, 0.25],
  ]);
});

prove('unscored', 'a rollout without a reward is a failed attempt with no triplet', async ({ found }) => {
  const { status, reward, turns } = found.rollouts.unscored;
  assert.deepEqual([status, reward, turns], ['failed', null, []]);
});

prove('rollouts', 'the agent for its trainer runs in its own runner', async ({ found }) => {
  assert.deepEqual([found.step.status, found.step.reward, found.step.turns.length], ['succeeded', 1, 2]);
});
