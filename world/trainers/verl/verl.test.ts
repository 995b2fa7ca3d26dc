// Rollouts of Millrace in verl's own code: its trainer before v1 and its v1 trainers, up to the advantages.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { qwen3Folder } from '@millrace/testkit';
import { z } from 'zod';
import { assertClose, assertExact, branch, computeAdvantages, plannedRewards, tasks } from '../bed/expectations.ts';
import { openProofs } from '../bed/proofs.ts';
import { checkSettings, settingsReport } from '../bed/settings.ts';
import { openTrainerPython, torchTrainers } from '../bed/trainer-python.ts';
import { openTrainerService, runTrainer } from '../bed/trainer-service.ts';

const { prove, settle } = openProofs('verl', {
  trainer: 'verl',
  versions: { verl: '0.9.1' },
  plug: 'v1 trainers: an agent loop, one output for each branch. The trainer before v1: `agent_loop_manager_class`, which returns its `DataProto`. Weights: `checkpoint_manager_class`.',
  setup: [
    '# v1: agent.yaml has "- {name: millrace, _target_: millrace_trainers.verl.MillraceAgentLoop}"; a dataset row has extra_info.task',
    'actor_rollout_ref.rollout.agent.agent_loop_config_path=agent.yaml actor_rollout_ref.rollout.agent.default_agent_loop=millrace',
    '# before v1',
    'trainer.use_v1=False algorithm.adv_estimator=millrace_grpo \\',
    '  actor_rollout_ref.rollout.agent.agent_loop_manager_class=millrace_trainers.verl.MillraceAgentLoopManager \\',
    '  actor_rollout_ref.rollout.checkpoint_manager_class=millrace_trainers.verl.MillraceCheckpointEngineManager',
  ].join('\n'),
  limits: [
    "The steps use verl's policy loss and PyTorch's optimiser: its actor workers have engines for CUDA, ROCm and NPU only. TransferQueue is replaced by a dict.",
    'The trainer before v1 takes one row for each prompt, so only the last branch of a rollout is trained on.',
  ],
});

const scored = branch.extend({
  rollout_id: z.string(),
  reward: z.number().nullable(),
  branches: z.array(branch),
  advantages: z.array(z.number()),
});
const batchRow = scored.extend({
  score: z.number(),
  own: z.array(z.number()),
  steps: z.array(z.int()),
  acc: z.number(),
  replays: z.boolean(),
});
const optimised = z.object({ loss: z.number(), clipped: z.number(), tokens: z.int(), changed: z.int(), gain: z.number() });
const batchStep = z.object({ rows: z.array(batchRow), optimised, shape: z.array(z.int()), keys: z.array(z.string()) });
const weights = z.object({ during: z.array(z.array(z.unknown())), after: z.array(z.unknown()) });
const batchReport = z.object({
  versions: z.object({ verl: z.string() }),
  steps: z.array(batchStep),
  cut: batchStep,
  weights,
  settings: settingsReport,
});
const tag = z.object({ global_steps: z.int(), min_global_steps: z.int(), max_global_steps: z.int(), status: z.string() });
const sessionReport = z.object({
  rows: z.array(scored.extend({ key: z.string(), branch: z.int(), tag })),
  status: z.record(z.string(), z.string()),
  filtered: z.array(z.string()),
  settings: settingsReport,
});
const wanted = plannedRewards.map((rewards) => computeAdvantages(rewards, { ddof: 1, epsilon: 1e-6 }));

/** Shorter than the prompts, so that their ends are in the response. */
const prompt_length = 24;
const cut_length = 9;

prove(
  ['rollouts', 'unscored', 'advantages', 'versions', 'weights', 'steps', 'replay'],
  'a DataProto of the manager has the ids of the ledger, joins with its prompts, has the experts of each token, and has advantages as by hand without the unscored rollout; verl updates weights while nothing is sampled; two steps with its policy loss on a tiny model have the loss by hand and change the weights',
  async () => {
    await using bed = await openTrainerService();
    const python = await openTrainerPython(torchTrainers);
    const backend = new URL(bed.backend.url).host;
    const input = { tasks, prompt_length, response_length: 48, cut_length, backend, tokenizer: qwen3Folder() };
    const report = batchReport.parse(await runTrainer(bed.url, { python, script: join(import.meta.dirname, 'batch.py'), input }));
    const sampled = report.steps.flatMap(({ rows }) => rows.map(({ rollout_id }) => rollout_id));
    settle(checkSettings(bed.backend, report.settings, sampled));
    for (const [number, { rows, shape, keys, optimised: seen }] of report.steps.entries()) {
      assert.deepEqual(
        [shape, keys],
        [
          [12, prompt_length + 48],
          ['acc', 'score'],
        ],
      );
      const gain = rows.reduce((sum, { sampled, advantages }) => sum + sampled.length * (advantages[0] ?? 0), 0);
      assert.equal(
        seen.tokens,
        rows.reduce((sum, { sampled }) => sum + sampled.length, 0),
      );
      assertClose(seen.loss, -gain / seen.tokens, 'the loss');
      assert.ok(seen.clipped === 0 && seen.changed > 10 && seen.gain > 0, JSON.stringify(seen));
      for (const [index, row] of rows.entries()) {
        const [group, member] = [Math.floor(index / 4), index % 4];
        const reward = plannedRewards[group]?.[member] ?? null;
        assert.equal(row.reward, reward);
        assert.deepEqual(row.steps, [number, number]);
        if (reward === null) {
          assert.deepEqual([row.sampled, row.advantages], [[], []]);
          assertClose(row.score, 2 / 3, 'the mean of its group');
          continue;
        }
        assertExact(row, row.branches.at(-1), row.rollout_id);
        assert.ok(row.replays, `${row.rollout_id}: routed experts`);
        assert.equal(row.acc, reward);
        const [advantage = Number.NaN, ...others] = row.advantages;
        assert.deepEqual(others, []);
        assertClose(advantage, wanted[group]?.[member] ?? Number.NaN, row.rollout_id);
        // verl's own estimator agrees where every rollout has a reward.
        if (group > 0) assertClose(row.own[0] ?? Number.NaN, advantage, `${row.rollout_id} by verl's grpo`);
      }
    }
    for (const row of report.cut.rows) {
      const all = row.branches.at(-1);
      if (row.reward !== null) assert.deepEqual(row.ids, all?.ids.slice(0, prompt_length + cut_length));
      assert.ok(row.sampled.length <= cut_length);
    }
    assert.deepEqual(report.weights, { during: [['paused', 0, 2, 7]], after: ['running', 7] });
  },
);

prove(
  ['branches', 'versions'],
  "verl's v1 worker queues an output for each branch with its policy versions, its DAPO filter finds the group without a signal, and its advantages count a rollout once",
  async () => {
    await using bed = await openTrainerService();
    const python = await openTrainerPython(torchTrainers);
    const input = { tasks, tokenizer: qwen3Folder() };
    const report = sessionReport.parse(await runTrainer(bed.url, { python, script: join(import.meta.dirname, 'sessions.py'), input }));
    settle(checkSettings(bed.backend, report.settings));
    assert.deepEqual(report.status, { u0: 'finished', u1: 'finished', u2: 'finished' });
    assert.deepEqual(report.filtered, ['u2']);
    // Two branches of three rollouts, and nothing of the unscored one.
    assert.equal(report.rows.length, 12 - 1 + 3);
    for (const row of report.rows) {
      const [, group = '', member = '', output = ''] = /^u(\d)_(\d)_(\d)$/.exec(row.key) ?? [];
      assert.equal(row.branch, Number(output));
      assertExact(row, row.branches[row.branch], row.key);
      assertClose(row.advantages[0] ?? Number.NaN, wanted[Number(group)]?.[Number(member)] ?? Number.NaN, row.key);
      assert.deepEqual(row.tag, { global_steps: 3, min_global_steps: 2, max_global_steps: 2, status: 'success' });
    }
  },
);
