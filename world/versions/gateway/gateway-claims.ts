// The gateway of Agent Lightning 1.0, from PyPI, and Millrace's controller, against a real service. Version 1.0 needs Python 3.12, and has no
// store: that of 0.3 is tested in world/trainers/agent-lightning.

import assert from 'node:assert/strict';
import { z } from 'zod';
import { checkSettings, settingsReport } from '../../trainers/bed/settings.ts';
import { openAdapterTrial } from '../../trainers/scene/adapter-trial.ts';
import { readLedger, turnsOf } from '../../trainers/scene/ledger.ts';
import { runs } from '../../trainers/scene/trial-service.ts';

const turn = z.object({ prompt: z.array(z.number()), completion: z.array(z.number()), logprobs: z.array(z.number()) });
const rollout = z.object({ state: z.string(), error: z.string().nullable(), rewards: z.array(z.number()), turns: z.array(turn) });
const report = z.object({
  rollouts: z.object({ right: rollout, wrong: rollout, branched: rollout, unscored: rollout }),
  store: z.string(),
  settings: settingsReport,
});

const head = { trainer: 'Agent Lightning', versions: {}, plug: '', setup: '' };
const { prove, settle } = openAdapterTrial('agent-lightning-gateway', head, {
  folder: import.meta.dirname,
  script: 'gateway.py',
  python: { requirements: 'set by npm run test:versions', torch: false },
  report,
  input: () => ({ tasks: runs, folder: process.env.TMPDIR ?? '/tmp' }),
});

prove(['rollouts', 'branches'], 'the triplets of the gateway are the turns of the ledger, branches included', async ({ found, client }) => {
  const views = await Array.fromAsync(client.list({ scenario: 'trial' }));
  const ledgers = await Promise.all(views.filter(({ reward }) => reward !== null).map(({ id }) => readLedger(client, id)));
  const all = ledgers.map(({ branches, reward }) => ({ turns: branches.flatMap(turnsOf), reward }));
  for (const { state, rewards, turns } of [found.rollouts.right, found.rollouts.wrong, found.rollouts.branched]) {
    assert.equal(state, 'succeeded');
    const own = all.find((one) => JSON.stringify(one.turns) === JSON.stringify(turns));
    assert.deepEqual([own?.reward], rewards);
  }
  assert.equal(found.rollouts.branched.turns.length, 4);
});

prove('unscored', 'a rollout without a reward fails, with its reason and without a turn', async ({ found }) => {
  const { state, error, turns, rewards } = found.rollouts.unscored;
  assert.deepEqual([state, turns, rewards], ['failed', [], []]);
  assert.match(error ?? '', /no ruler today/);
});

prove('rollouts', 'the sampling of the controller arrives', async ({ found, trial }) => {
  settle(checkSettings(trial.backend, found.settings));
});

prove('rollouts', '--store says that this version has a gateway and no store', async ({ found }) => {
  assert.match(found.store, /needs agentlightning >= 0\.3\.0, < 1, and agentlightning 1\.0\.\d is installed; .*leave out --store/);
});
