// OpenEnv's own session contract and strict training trace, from PyPI, against a real service.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before } from 'node:test';
import { z } from 'zod';
import { openProofs } from '../bed/proofs.ts';
import { openTrainerPython } from '../bed/trainer-python.ts';
import { readLedger, turnsOf } from '../scene/ledger.ts';
import { runAdapter } from '../scene/run-adapter.ts';
import { openTrialService, runs, slowRun, type TrialService } from '../scene/trial-service.ts';

const folder = import.meta.dirname;

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
});

let trial: TrialService | undefined;
// Before openProofs, whose own hook fails if the proofs differ: the hooks after it would then not run.
after(() => trial?.[Symbol.asyncDispose]());

const { prove } = openProofs('openenv', {
  trainer: 'OpenEnv',
  versions: { openenv: '0.10.0' },
  plug: "A session factory for agents that own their loop, which TRL's asynchronous trainer takes as `harness_session_factory`.",
  setup:
    'from millrace_trainers.openenv import MillraceSessionFactory\ntrainer = AsyncGRPOTrainer(…, harness_session_factory=MillraceSessionFactory)',
  limits: ["TRL's trainer was not run with it; TRL has its own adapter."],
});

let found: z.infer<typeof report> | undefined;

before(async () => {
  trial = await openTrialService();
  const python = await openTrainerPython({ requirements: join(folder, 'openenv.txt'), torch: false });
  const input = { tasks: runs, slow: slowRun };
  found = report.parse(await runAdapter(trial.service.url, { python, script: join(folder, 'sessions.py'), input }));
});

prove(
  ['rollouts', 'branches'],
  'the training turns of a session are the turns of the ledger, branches included, and OpenEnv validates them',
  async () => {
    assert.ok(trial && found);
    const { right, wrong, branched } = found.sessions;
    for (const { id, turns, masks, reward } of [right, wrong, branched]) {
      const ledger = await readLedger(trial.service.client, id);
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

prove('rollouts', 'each turn has the messages that came before it', async () => {
  assert.deepEqual(found?.sessions.right.roles, [
    ['system', 'user'],
    ['system', 'user', 'assistant', 'tool'],
  ]);
});

prove('unscored', 'a rollout without a reward has no turn, and its reward is None', async () => {
  const { code, reward, failure, turns } = found?.sessions.unscored ?? {};
  assert.deepEqual([code, reward, failure, turns], [1, null, 'evaluate-failed', []]);
});

prove('rollouts', 'a session that is closed early cancels its rollout', async () => {
  assert.equal(found?.closed, 'cancelled');
});
