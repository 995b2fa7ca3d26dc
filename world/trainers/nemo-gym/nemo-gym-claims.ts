// NeMo Gym's own configuration parser, head server, rollout collection and validators, from PyPI, against a real service.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before } from 'node:test';
import { z } from 'zod';
import { openProofs } from '../bed/proofs.ts';
import { openTrainerPython } from '../bed/trainer-python.ts';
import { readLedger, turnsOf } from '../scene/ledger.ts';
import { findNewerPython } from '../scene/newer-python.ts';
import { runAdapter } from '../scene/run-adapter.ts';
import { openTrialService, runs, type TrialService } from '../scene/trial-service.ts';

const folder = import.meta.dirname;

const result = z.object({
  id: z.string(),
  reward: z.number(),
  branches: z.number(),
  input: z.array(z.string()),
  output: z.array(z.string()),
  turns: z.array(z.object({ prompt: z.array(z.number()), completion: z.array(z.number()), logprobs: z.array(z.number()) })),
});
const report = z.object({
  results: z.object({ right: result, wrong: result, branched: result, failed: z.object({ error: z.string(), content: z.string() }) }),
  metrics: z.record(z.string(), z.unknown()),
});

const setup = 'millrace:\n  responses_api_agents:\n    millrace:\n      host: 127.0.0.1\n      port: 9007';

let trial: TrialService | undefined;
// Before openProofs, whose own hook fails if the proofs differ: the hooks after it would then not run.
after(() => trial?.[Symbol.asyncDispose]());

const { prove } = openProofs('nemo-gym', {
  trainer: 'NeMo Gym and NeMo RL',
  versions: { 'nemo-gym': '0.4.0' },
  plug: 'An agent server, `python -m millrace_trainers.nemo_gym --port 9007`. An agent without `entrypoint` is one that NeMo Gym does not start.',
  setup,
  limits: [
    'NeMo RL takes one sequence per rollout: of a rollout with branches it gets the last one, and `branches` says how many there are.',
    'It has no field for a rollout without a reward: such a rollout is sampled again, up to `--tries` times, and then `/run` fails.',
    'NeMo RL itself is not on PyPI (0.0.0 is a placeholder).',
  ],
});

let found: z.infer<typeof report> | undefined;

before(async () => {
  trial = await openTrialService();
  const base = findNewerPython();
  assert.ok(base);
  const python = await openTrainerPython({ requirements: join(folder, 'nemo-gym.txt'), torch: false, base });
  const input = { tasks: runs, config: setup };
  found = report.parse(await runAdapter(trial.service.url, { python, script: join(folder, 'agent_server.py'), input }));
});

prove('rollouts', 'the turns that /run returns are those of the ledger, and NeMo Gym validates them', async () => {
  assert.ok(trial && found);
  const { right, wrong } = found.results;
  for (const { id, turns, reward } of [right, wrong]) {
    const { branches, reward: ours } = await readLedger(trial.service.client, id);
    assert.deepEqual(turns, branches.flatMap(turnsOf));
    assert.equal(reward, ours);
  }
  assert.deepEqual([right.reward, wrong.reward], [1, 0.25]);
  assert.deepEqual(right.input, ['message', 'message']);
  assert.deepEqual(right.output, ['message', 'function_call', 'function_call_output', 'function_call']);
});

prove('rollouts', 'of a rollout with branches, the last one is returned, and the number of branches', async () => {
  assert.ok(trial && found);
  const { id, turns, branches } = found.results.branched;
  const ledger = await readLedger(trial.service.client, id);
  assert.deepEqual(turns, ledger.branches.slice(-1).flatMap(turnsOf));
  assert.equal(branches, 2);
});

prove('unscored', 'a rollout without a reward is sampled again, and then /run fails and names the reason: it is never a zero', async () => {
  assert.match(found?.results.failed.content ?? '', /evaluate-failed: .*no ruler today.*sampled 2 times/);
  const all = await Array.fromAsync(trial?.service.client.list({ scenario: 'trial' }) ?? []);
  assert.equal(all.filter(({ state }) => state === 'failed').length, 2);
});

prove('rollouts', 'NeMo Gym aggregates the rewards of its results', async () => {
  assert.equal(found?.metrics['mean/reward'], 0.75);
});
