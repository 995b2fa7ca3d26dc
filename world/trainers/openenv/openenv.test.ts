// OpenEnv's own session contract and strict training trace, from PyPI, against a real service.

import assert from 'node:assert/strict';
import { z } from 'zod';
import { checkSettings, settingsReport } from '../bed/settings.ts';
import { openAdapterTrial } from '../scene/adapter-trial.ts';
import { readLedger, turnsOf } from '../scene/ledger.ts';
import { runs, slowRun } from '../scene/trial-service.ts';

const session = z.object({
  id: z.string(),
  code: z.number(),
  reward: z.number().nullable(),
  failure: z.string().nullable(),
  roles: z.array(z.array(z.string())),
  masks: z.array(z.array(z.number())),
  turns: z.array(z.object({ prompt: z.array(z.number()), completion: z.array(z.number()), logprobs: z.array(z.number()) })),
});
const report = z.object({
  sessions: z.object({ right: session, wrong: session, branched: session, unscored: session }),
  closed: z.string(),
  settings: settingsReport,
});

const head = {
  trainer: 'OpenEnv',
  versions: { openenv: '0.10.0' },
  plug: "A session factory for agents that own their loop, which TRL's asynchronous trainer takes as `harness_session_factory`.",
  setup:
    'from millrace_trainers.openenv import MillraceSessionFactory\ntrainer = AsyncGRPOTrainer(…, harness_session_factory=MillraceSessionFactory)',
  limits: ["TRL's trainer was not run with it; TRL has its own adapter."],
};

const { prove, settle } = openAdapterTrial('openenv', head, {
  folder: import.meta.dirname,
  script: 'sessions.py',
  python: { requirements: 'openenv.txt', torch: false },
  report,
  input: () => ({ tasks: runs, slow: slowRun }),
});

prove(
  ['rollouts', 'branches'],
  'the training turns of a session are the turns of the ledger, branches included, and OpenEnv validates them',
  async ({ found, client }) => {
    const { right, wrong, branched } = found.sessions;
    for (const { id, turns, masks, reward } of [right, wrong, branched]) {
      const ledger = await readLedger(client, id);
      assert.deepEqual(turns, ledger.branches.flatMap(turnsOf));
      assert.deepEqual(
        masks,
        turns.map(({ prompt, completion }) => [completion.length, prompt.length + completion.length]),
      );
      assert.equal(reward, ledger.reward);
    }
    assert.deepEqual([right.reward, wrong.reward, branched.turns.length], [1, 0.25, 4]);
  },
);

prove('rollouts', 'each turn has the messages that came before it, and the sampling of the trainer', async ({ found, trial }) => {
  settle(checkSettings(trial.backend, found.settings));
  assert.deepEqual(found.sessions.right.roles, [
    ['system', 'user'],
    ['system', 'user', 'assistant', 'tool'],
  ]);
});

prove('unscored', 'a rollout without a reward has no turn, and its reward is None', async ({ found }) => {
  const { code, reward, failure, turns } = found.sessions.unscored;
  assert.deepEqual([code, reward, failure, turns], [1, null, 'evaluate-failed', []]);
});

prove('rollouts', 'a session that is closed early cancels its rollout', async ({ found }) => {
  assert.equal(found.closed, 'cancelled');
});
