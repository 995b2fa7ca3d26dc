// verifiers' own client, env server, taskset loader and trace code, from PyPI, against a real service. prime-rl speaks through the same client.

import assert from 'node:assert/strict';
import { z } from 'zod';
import { checkSettings, settingsReport } from '../bed/settings.ts';
import { openAdapterTrial } from '../scene/adapter-trial.ts';
import { readLedger, sequence } from '../scene/ledger.ts';
import { runs, slowRun } from '../scene/trial-service.ts';

const episode = z.object({
  id: z.string(),
  ok: z.boolean(),
  reward: z.number().nullable(),
  errors: z.array(z.string()),
  roles: z.array(z.array(z.string())),
  finish: z.array(z.string().nullable()),
  experts: z.array(z.array(z.number()).nullable()),
  branches: z.array(sequence),
});
const report = z.object({
  episodes: z.array(episode),
  routed: episode,
  refused: z.string(),
  cancelled: z.string(),
  settings: settingsReport,
});

const head = {
  trainer: 'verifiers and prime-rl',
  versions: { verifiers: '0.4.0' },
  plug: 'A taskset and an environment. prime-rl starts its own env server with them; `python -m millrace_trainers.verifiers` is one too.',
  setup: '[orchestrator.train.source.env.taskset]\nid = "millrace_verifiers"\ntasks = "tasks.jsonl"',
  limits: [
    'prime-rl itself is not on PyPI; its `trace_to_samples` was run by hand.',
    'prime-rl does not read the policy versions, which are in `trace.info`.',
  ],
};

const { prove, settle } = openAdapterTrial('verifiers', head, {
  folder: import.meta.dirname,
  script: 'env_server.py',
  python: { requirements: 'verifiers.txt', torch: false },
  report,
  input: ({ backend }) => ({ tasks: Object.values(runs), slow: slowRun, backend: backend.url }),
  joins: false,
});

prove(['rollouts', 'branches'], 'the branches of a trace are those of the ledger, token by token', async ({ found, client }) => {
  for (const { id, branches } of found.episodes) assert.deepEqual(branches, (await readLedger(client, id)).branches, id);
  assert.deepEqual(
    found.episodes.map(({ branches }) => branches.length),
    [1, 1, 2, 1],
  );
  assert.deepEqual(
    found.episodes.map(({ reward }) => reward),
    [1, 0.25, 1, null],
  );
});

prove('rollouts', 'messages, tool calls and finish reasons are those of the conversation', async ({ found }) => {
  assert.deepEqual(found.episodes[0]?.roles, [['system', 'user', 'assistant', 'tool', 'assistant']]);
  assert.deepEqual(found.episodes[0]?.finish, ['tool_calls', 'tool_calls']);
});

prove('unscored', 'a rollout without a reward is a failed trace that names the reason, and has no reward', async ({ found }) => {
  const last = found.episodes.at(-1);
  assert.deepEqual([last?.ok, last?.reward, last?.errors], [false, null, ['evaluate-failed']]);
});

prove('replay', 'routed experts come with every token of a branch', async ({ found }) => {
  const [ids] = found.routed.branches.map((one) => one.ids.length) ?? [];
  assert.deepEqual(found.routed.experts[0]?.[0], ids);
});

prove('rollouts', "the trainer's LLM server joins the pool once, with the trainer's model name", async ({ trial, client }) => {
  const backends = await client.backends.list();
  assert.deepEqual(
    backends?.map(({ url, model }) => [url, model]),
    [[trial.backend.url, 'fake']],
  );
});

prove('rollouts', 'a run that the trainer cancels is cancelled in the service', async ({ found, client }) => {
  assert.equal((await client.get(found.cancelled ?? ''))?.state, 'cancelled');
});

prove('rollouts', 'every sampling parameter arrives, and one that Millrace cannot do is refused by name', async ({ found, trial }) => {
  const ids = found.episodes.map(({ id }) => id);
  settle(checkSettings(trial.backend, found.settings, ids));
  assert.match(found.refused ?? '', /'best_of' of the trainer is 4/);
});
