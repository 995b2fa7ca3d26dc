// rLLM's own gateway, from PyPI, between a real service and its LLM server. rLLM itself is not on PyPI: its engine's part and its types are a
// stand-in, written from its documented protocol; with MILLRACE_RLLM_SOURCES set to its sources, its own gateway and types are used.

import assert from 'node:assert/strict';
import { z } from 'zod';
import { checkSettings, settingsReport } from '../bed/settings.ts';
import { openAdapterTrial } from '../scene/adapter-trial.ts';
import { readLedger, turnsOf } from '../scene/ledger.ts';
import { runs } from '../scene/trial-service.ts';

const turn = z.object({ prompt: z.array(z.number()), completion: z.array(z.number()), logprobs: z.array(z.number()).nullable() });
const episode = z.object({
  id: z.string(),
  finished: z.boolean(),
  reward: z.number().nullable(),
  error: z.string().nullable(),
  reason: z.string(),
  turns: z.array(turn),
});
const report = z.object({
  settings: settingsReport,
  episodes: z.object({ right: episode, wrong: episode, branched: episode, unscored: episode }),
});

const head = {
  trainer: 'rLLM',
  versions: { 'rllm-model-gateway': '0.1.0' },
  plug: "`RemoteAgentRuntime`. rLLM's gateway joins the service as a backend with the session in its address, and keeps every turn for rLLM's trainer.",
  setup:
    'from millrace_trainers.rllm import register\nregister(sampling={"temperature": 0.7})  # as in rLLM, before the trainer is made; a task is {"scenario": …, "task": {…}}\nrllm.remote_runtime.enabled=true rllm.remote_runtime.backend=millrace',
  limits: [
    "rLLM is not on PyPI: the automatic test has its gateway from there, and a stand-in for its engine and types. The gateway on PyPI keeps no logprobs of token routes; that of rLLM's sources does.",
    'All rollouts of the service are sampled through the gateway, so it should have no other backend. A rollout is not retried, because its session would keep the turns of both tries.',
    'rLLM counts each turn as a step of one trajectory, branches included.',
  ],
};
const { prove, settle } = openAdapterTrial('rllm', head, {
  folder: import.meta.dirname,
  script: 'episodes.py',
  python: { requirements: 'rllm.txt', torch: false },
  report,
  joins: false,
  input: ({ backend }) => ({ tasks: runs, backend: backend.url }),
});

prove(
  ['rollouts', 'branches'],
  'the traces of a session are the turns of its rollout, branches included, though four sessions run at once',
  async ({ found, client, trial }) => {
    settle(checkSettings(trial.backend, found.settings));
    for (const { id, turns, reward, finished } of [found.episodes.right, found.episodes.wrong, found.episodes.branched]) {
      const ledger = await readLedger(client, id);
      const expected = ledger.branches.flatMap(turnsOf);
      assert.deepEqual(
        turns.map(({ prompt, completion }) => ({ prompt, completion })),
        expected.map(({ prompt, completion }) => ({ prompt, completion })),
      );
      for (const [index, { logprobs }] of turns.entries()) if (logprobs) assert.deepEqual(logprobs, expected[index]?.logprobs);
      assert.deepEqual([finished, reward], [true, ledger.reward]);
    }
    const { right, wrong, branched } = found.episodes;
    assert.deepEqual([right.reward, wrong.reward, branched.turns.length, right.reason], [1, 0.25, 4, 'env_done']);
  },
);

prove(
  'unscored',
  'a rollout without a reward is finished, with a reason, no reward and no turn: rLLM would count an unfinished one as 0',
  async ({ found }) => {
    const { finished, reward, error, reason, turns } = found.episodes.unscored;
    assert.deepEqual([finished, reward, reason, turns], [true, null, 'error', []]);
    assert.match(error ?? '', /no ruler today/);
  },
);
