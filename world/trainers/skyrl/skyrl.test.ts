// Rollouts of Millrace in SkyRL's own trainer code, from its generator interface to advantages, in both of its modes.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { qwen3Folder } from '@millrace/testkit';
import { z } from 'zod';
import { assertClose, assertExact, branch, computeAdvantages, ledger, plannedRewards, tasks } from '../bed/expectations.ts';
import { openProofs } from '../bed/proofs.ts';
import { checkSettings, settingsReport } from '../bed/settings.ts';
import { openTrainerPython, torchTrainers } from '../bed/trainer-python.ts';
import { openTrainerService, runTrainer } from '../bed/trainer-service.ts';

const { prove, settle } = openProofs('skyrl', {
  trainer: 'SkyRL',
  versions: { skyrl: '0.3.0' },
  plug: '`GeneratorInterface`, returned from `get_generator` of your experiment.',
  setup: [
    'from millrace_trainers import RolloutSource',
    'from millrace_trainers.skyrl import MillraceGenerator',
    '# in your BasePPOExp; a dataset row has the column `task`; generator.step_wise_trajectories=true keeps every branch',
    'def get_generator(self, cfg, tokenizer, inference_engine_client):',
    '    return MillraceGenerator(RolloutSource("math"), step_wise=cfg.generator.step_wise_trajectories)',
  ].join('\n'),
  limits: [
    'Its optimiser steps run on one CPU without Ray and FSDP: its dispatch and strategy are replaced, its trainer, policy worker, model wrapper and loss are not.',
    'SkyRL 0.4 needs Python 3.12, for which the tests have no PyTorch: its validation and its packing of experts were run by hand on what the adapter returns.',
    'Without step-wise training SkyRL takes one row for each prompt: the last branch is trained on, and the deviation of a group with an unscored rollout counts that one at the mean.',
  ],
});

const row = branch.extend({
  group: z.string(),
  member: z.int(),
  advantages: z.array(z.number()),
  experts: z.array(z.array(z.int())),
  trained: z.int().nullable(),
});
const optimised = z.object({ loss: z.number(), norm: z.number(), tokens: z.int(), changed: z.int() });
const step = z.object({ rows: z.array(row), optimised: optimised.nullable(), metrics: z.record(z.string(), z.number()) });
const reportShape = z.object({
  plain: step,
  step_wise: step,
  merged: step,
  ledger,
  settings: settingsReport,
  experts: z.record(z.string(), z.array(z.array(z.int()))),
});
type Step = z.infer<typeof step>;

const wanted = plannedRewards.map((rewards) => computeAdvantages(rewards, { ddof: 1, epsilon: 1e-6 }));
/** With the mean in the place of the unscored one. */
const filled = plannedRewards.map((rewards) =>
  computeAdvantages(
    rewards.map((one) => one ?? 2 / 3),
    { ddof: 1, epsilon: 1e-6 },
  ),
);

let report: Promise<z.infer<typeof reportShape>> | undefined;

/** One run of Python for all claims: importing SkyRL takes most of its time. */
function openReport(): Promise<z.infer<typeof reportShape>> {
  report ??= runTraining();
  return report;
}

async function runTraining(): Promise<z.infer<typeof reportShape>> {
  await using bed = await openTrainerService();
  const python = await openTrainerPython(torchTrainers);
  const input = { tasks, tokenizer: qwen3Folder() };
  const found = reportShape.parse(await runTrainer(bed.url, { python, script: join(import.meta.dirname, 'train.py'), input }));
  settle(checkSettings(bed.backend, found.settings));
  return found;
}

prove(
  ['rollouts', 'unscored'],
  "SkyRL's validation accepts one row for each prompt in order, exact by token, with a zero mask for the unscored",
  async () => {
    const { plain, ledger } = await openReport();
    assert.equal(plain.rows.length, 12);
    assert.equal(plain.metrics['generate/unscored_rollouts'], 1);
    for (const [index, one] of plain.rows.entries()) {
      const [group, member] = [Math.floor(index / 4), index % 4];
      assert.deepEqual([one.group, one.member], [`prompt-${group}`, member]);
      if (plannedRewards[group]?.[member] === null) assert.deepEqual([one.trained, one.sampled], [0, []]);
      else {
        assertExact(one, branchesOf(ledger, 1, group, member).at(-1), `${group}-${member}`);
        assertClose(one.advantages[0] ?? Number.NaN, filled[group]?.[member] ?? Number.NaN, `${group}-${member}`);
      }
    }
  },
);

prove(
  ['branches', 'advantages', 'versions'],
  'in step-wise training every branch is a step, and the advantages are those by hand, each rollout counted once',
  async () => {
    const { step_wise, ledger } = await openReport();
    checkSteps(step_wise, ledger);
    assert.equal(step_wise.metrics['generate/policy_version_min'], 1, 'the weights of step 2 are version 1');
    assert.equal(step_wise.metrics['generate/unscored_rollouts'], 1);
  },
);

prove('branches', "SkyRL's own merging of steps finds nothing left to merge", async () => {
  const { step_wise, merged } = await openReport();
  assert.deepEqual(
    merged.rows.map(({ trained: _, experts: __, ...rest }) => rest),
    step_wise.rows.map(({ trained: _, experts: __, ...rest }) => rest),
  );
});

prove(
  'steps',
  "two steps of its trainer and policy worker on a tiny model: with unchanged weights the loss is the advantages' mean over sampled tokens, as by hand, and each step changes the weights",
  async () => {
    const { plain, step_wise } = await openReport();
    for (const { rows, optimised: seen } of [plain, step_wise]) {
      const tokens = rows.reduce((sum, { sampled }) => sum + sampled.length, 0);
      const gain = rows.reduce((sum, { sampled, advantages }) => sum + sampled.length * (advantages[0] ?? 0), 0);
      assert.equal(seen?.tokens, tokens);
      assertClose(seen?.loss ?? Number.NaN, -gain / tokens, 'the loss');
      assert.ok(seen && seen.norm > 0 && seen.changed > 10, JSON.stringify(seen));
    }
  },
);

prove('replay', 'its training batch has the experts of each token, at the place of the token', async () => {
  const { step_wise, experts } = await openReport();
  for (const { group, member, ids, experts: rows } of step_wise.rows.filter((one) => isFirst(step_wise.rows, one))) {
    const [, wanted] = Object.entries(experts).find(([id]) => id.endsWith(`-2-${group.split('-')[1]}-${member}`)) ?? [];
    assert.deepEqual([rows.length, wanted?.length], [ids.length, ids.length - 1]);
    assert.deepEqual(rows.slice(0, -1), wanted);
  }
});

/** The first branch of its rollout. */
function isFirst(rows: Step['rows'], one: Step['rows'][number]): boolean {
  return rows.find(({ group, member }) => group === one.group && member === one.member) === one;
}

function checkSteps({ rows }: Step, all: z.infer<typeof ledger>): void {
  const seen = new Map<string, number>();
  for (const one of rows) {
    const [group, key] = [Number(one.group.split('-')[1]), `${one.group} ${one.member}`];
    const number = seen.get(key) ?? 0;
    seen.set(key, number + 1);
    assertExact(one, branchesOf(all, 2, group, one.member)[number], key);
    assertClose(one.advantages[0] ?? Number.NaN, wanted[group]?.[one.member] ?? Number.NaN, key);
  }
  assert.equal(rows.length, 12 - 1 + 3, 'two branches of three rollouts, and nothing of the unscored one');
  assert.equal(seen.size, 11);
}

function branchesOf(all: z.infer<typeof ledger>, call: number, group: number, member: number) {
  const [, found] = Object.entries(all).find(([id]) => id.endsWith(`-${call}-${group}-${member}`)) ?? [];
  return found?.branches ?? [];
}
