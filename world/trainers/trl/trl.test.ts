// Rollouts of Millrace in TRL's own trainers, with real optimiser steps on a tiny model: GRPOTrainer and AsyncGRPOTrainer.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { qwen3Folder } from '@millrace/testkit';
import { z } from 'zod';
import { assertClose, assertExact, branch, computeAdvantages, ledger, plannedRewards, tasks } from '../bed/expectations.ts';
import { openProofs } from '../bed/proofs.ts';
import { checkSettings, settingsReport } from '../bed/settings.ts';
import { openTrainerPython, torchTrainers } from '../bed/trainer-python.ts';
import { openTrainerService, runTrainer } from '../bed/trainer-service.ts';

const { prove, settle } = openProofs('trl', {
  trainer: 'TRL',
  versions: { trl: '1.16.0' },
  plug: '`rollout_func` of `GRPOTrainer`; `rollout_worker` and `weight_transfer` of `AsyncGRPOTrainer`.',
  setup: [
    'rollouts = MillraceRollouts(RolloutSource("math"), load_weights=…)  # of millrace_trainers and millrace_trainers.trl',
    'GRPOTrainer(…, rollout_func=rollouts, reward_funcs=reward_from_rollout, train_dataset=Dataset.from_list(rollouts.to_rows(tasks)))',
    '# asynchronous, every branch a sample:',
    'AsyncGRPOTrainer(…, args=config, rollout_worker=MillraceRolloutWorker(source, tasks, config),',
    '                 weight_transfer=MillraceWeightTransfer(source, WeightTransferClient(…)))',
  ].join('\n'),
  limits: [
    '`GRPOTrainer` takes one completion for each prompt: of a rollout with several branches the last is trained on. `AsyncGRPOTrainer` takes all.',
    '`AsyncGRPOTrainer` needs a GPU for its attention kernel and for one metric; the test replaces these two functions.',
  ],
});

const step = z.object({
  advantages: z.array(z.number()),
  completion_ids: z.array(z.array(z.int())),
  trained: z.array(z.number()),
  rewards: z.array(z.number().nullable()),
  returned_ids: z.array(z.array(z.int())),
  returned_masks: z.array(z.array(z.int())),
  versions: z.array(z.int()),
});
const grpoReport = z.object({
  steps: z.array(step),
  loads: z.array(z.object({ step: z.int(), generating: z.int() })),
  losses: z.array(z.number()),
  changed: z.int(),
  ledger,
  rollouts: z.array(z.array(z.string())),
  settings: settingsReport,
});
const sample = branch.extend({ rollout_id: z.string(), branch: z.int(), group: z.int(), advantage: z.number(), version: z.int() });
const asyncReport = z.object({
  samples: z.array(sample),
  sent: z.array(z.object({ state: z.string(), generating: z.int(), version: z.int(), weights: z.number() })),
  steps: z.int(),
  changed: z.int(),
  staleness: z.array(z.number()),
  ledger,
  settings: settingsReport,
});

prove(
  ['rollouts', 'unscored', 'advantages', 'steps', 'versions', 'weights'],
  'two steps of GRPOTrainer: tasks are found by their prompts, completions are exact, the unscored one is left out of the baseline, advantages are those by hand, and each step samples from new weights',
  async () => {
    await using bed = await openTrainerService();
    const python = await openTrainerPython(torchTrainers);
    const input = { tasks: tasks.slice(0, 2), tokenizer: qwen3Folder() };
    const report = grpoReport.parse(await runTrainer(bed.url, { python, script: join(import.meta.dirname, 'grpo.py'), input }));
    const wanted = plannedRewards.slice(0, 2).flatMap((rewards) => computeAdvantages(rewards, { ddof: 1, epsilon: 1e-4 }));
    assert.equal(report.steps.length, 2);
    for (const [number, { advantages, completion_ids, trained, rewards, versions }] of report.steps.entries()) {
      assert.deepEqual(versions, [number]);
      assert.deepEqual(rewards, plannedRewards.slice(0, 2).flat());
      for (const [index, advantage] of advantages.entries()) {
        const { branches } = report.ledger[report.rollouts[number]?.[index] ?? ''] ?? assert.fail();
        const last = branches.at(-1);
        assertClose(advantage, wanted[index] ?? Number.NaN, `completion ${index}`);
        if (rewards[index] === null) assert.equal(trained[index], 0);
        else {
          assert.deepEqual(completion_ids[index], last?.ids.slice(-(completion_ids[index]?.length ?? 0)));
          assert.equal(trained[index], last?.sampled.length);
        }
      }
    }
    settle(checkSettings(bed.backend, report.settings));
    assert.deepEqual(report.loads, [{ step: 1, generating: 0 }]);
    assert.ok(report.changed > 10 && report.losses.every(Number.isFinite));
  },
);

prove(
  ['branches', 'unscored', 'advantages', 'steps', 'versions', 'weights'],
  'two steps of AsyncGRPOTrainer: every branch is a sample with the advantage of its rollout, groups without a signal are left out, and weights are sent while nothing is sampled',
  async () => {
    await using bed = await openTrainerService();
    const python = await openTrainerPython(torchTrainers);
    const input = { tasks, tokenizer: qwen3Folder() };
    const report = asyncReport.parse(await runTrainer(bed.url, { python, script: join(import.meta.dirname, 'async_grpo.py'), input }));
    assert.equal(report.steps, 2);
    assert.ok(report.changed > 10);
    const wanted = plannedRewards.map((rewards) => computeAdvantages(rewards, { ddof: 0, epsilon: 1e-8 }));
    for (const one of report.samples) {
      const [task, member] = [one.group % 3, Number(/(\d+)$/.exec(one.rollout_id)?.[1])];
      assert.notEqual(task, 2, 'the third group has no signal');
      assertExact(one, report.ledger[one.rollout_id]?.branches[one.branch], one.rollout_id);
      assertClose(one.advantage, wanted[task]?.[member] ?? Number.NaN, one.rollout_id);
    }
    settle(checkSettings(bed.backend, report.settings));
    assert.ok(report.samples.some((one) => one.branch === 1));
    assert.deepEqual(
      report.sent.map(({ state, generating, version }) => [state, generating, version]),
      [0, 1, 2].map((version) => ['paused', 0, version]),
    );
    const [first = 0, second = 0, third = 0] = report.sent.map(({ weights }) => weights);
    assert.ok(first !== second && second !== third, 'each step sends other weights');
    const versions = new Set(report.samples.map(({ version }) => version));
    assert.ok(versions.has(1), `samples know the version of TRL that sampled them: ${[...versions]}`);
  },
);

prove(
  'weights',
  'in two processes of a trainer, both take part in loading weights, as gathering sharded ones needs, while nothing is sampled',
  async () => {
    await using bed = await openTrainerService();
    const python = await openTrainerPython(torchTrainers);
    const report = z
      .object({ loads: z.array(z.array(z.unknown())), after: z.array(z.unknown()) })
      .parse(await runTrainer(bed.url, { python, script: join(import.meta.dirname, 'sharded.py') }));
    const loads = [1, 2].flatMap((step) => [0, 1].map((rank) => [rank, step, 3, 'paused', step - 1]));
    assert.deepEqual(report, { loads, after: ['running', 2] });
  },
);
