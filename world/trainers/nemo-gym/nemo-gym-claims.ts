// NeMo Gym's own configuration parser, head server, rollout collection and validators, from PyPI, against a real service.

import assert from 'node:assert/strict';
import { z } from 'zod';
import { checkSettings, settingsReport } from '../bed/settings.ts';
import { openAdapterTrial } from '../scene/adapter-trial.ts';
import { readLedger, turnsOf } from '../scene/ledger.ts';
import { findNewerPython } from '../scene/newer-python.ts';
import { runs } from '../scene/trial-service.ts';

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
  settings: settingsReport,
});

const setup = 'millrace:\n  responses_api_agents:\n    millrace:\n      host: 127.0.0.1\n      port: 9007';
/** The same process, as the environment server in front of its own agent. */
const fronted = `
millrace_environment:
  environment_servers:
    millrace:
      host: 127.0.0.1
      port: 9007
      agent_server: {type: responses_api_agents, name: millrace}`;

const head = {
  trainer: 'NeMo Gym and NeMo RL',
  versions: { 'nemo-gym': '0.4.0' },
  plug: 'An agent server, `python -m millrace_trainers.nemo_gym --port 9007`. An agent without `entrypoint` is one that NeMo Gym does not start.',
  setup,
  limits: [
    'NeMo RL takes one sequence per rollout: of a rollout with branches it gets the last one, and `branches` says how many there are.',
    'It has no field for a rollout without a reward: such a rollout is sampled again, up to `--tries` times, and then `/run` fails.',
    'NeMo Gym 0.5 and later need Python 3.13.14. Since 0.7 the same process is also named as the environment server of its agent: `millrace_environment: {environment_servers: {millrace: {host: 127.0.0.1, port: 9007, agent_server: {type: responses_api_agents, name: millrace}}}}`.',
    'NeMo RL itself is not on PyPI (0.0.0 is a placeholder).',
  ],
};

const base = findNewerPython();
assert.ok(base);
const { prove, settle } = openAdapterTrial('nemo-gym', head, {
  folder: import.meta.dirname,
  script: 'agent_server.py',
  python: { requirements: 'nemo-gym.txt', torch: false, base },
  report,
  input: () => ({ tasks: runs, config: setup, fronted }),
});

prove('rollouts', 'the turns that /run returns are those of the ledger, and NeMo Gym validates them', async ({ found, client }) => {
  const { right, wrong } = found.results;
  for (const { id, turns, reward } of [right, wrong]) {
    const { branches, reward: ours } = await readLedger(client, id);
    assert.deepEqual(turns, branches.flatMap(turnsOf));
    assert.equal(reward, ours);
  }
  assert.deepEqual([right.reward, wrong.reward], [1, 0.25]);
  assert.deepEqual(right.input, ['message', 'message']);
  assert.deepEqual(right.output, ['message', 'function_call', 'function_call_output', 'function_call']);
});

prove('rollouts', 'of a rollout with branches, the last one is returned, and the number of branches', async ({ found, client }) => {
  const { id, turns, branches } = found.results.branched;
  const ledger = await readLedger(client, id);
  assert.deepEqual(turns, ledger.branches.slice(-1).flatMap(turnsOf));
  assert.equal(branches, 2);
});

prove(
  'unscored',
  'a rollout without a reward is sampled again, and then /run fails and names the reason: it is never a zero',
  async ({ found, client }) => {
    assert.match(found.results.failed.content ?? '', /evaluate-failed: .*no ruler today.*sampled 2 times/);
    const all = await Array.fromAsync(client.list({ scenario: 'trial' }));
    assert.equal(all.filter(({ state }) => state === 'failed').length, 2);
  },
);

prove('rollouts', 'NeMo Gym aggregates the rewards of its results, and its parameters arrive', async ({ found, trial }) => {
  settle(checkSettings(trial.backend, found.settings));
  assert.equal(found.metrics['mean/reward'], 0.75);
});
