// Rollouts of Millrace as slime's samples. slime is not on PyPI: with MILLRACE_SLIME_SOURCES, the folder of its sources, its own code converts
// them; otherwise a stand-in with the fields that its documentation names.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { z } from 'zod';
import { assertClose, assertExact, branch, computeAdvantages, ledger, plannedRewards, tasks } from '../bed/expectations.ts';
import { openProofs } from '../bed/proofs.ts';
import { checkSettings, settingsReport } from '../bed/settings.ts';
import { openTrainerPython, torchTrainers } from '../bed/trainer-python.ts';
import { openTrainerService, runTrainer } from '../bed/trainer-service.ts';

const { prove, settle } = openProofs('slime', {
  trainer: 'slime',
  versions: { 'slime (git)': '0.3.1' },
  plug: '`--rollout-function-path`, and `--custom-reward-post-process-path` for rewards normalised over rollouts.',
  setup: [
    '# the metadata of a dataset row (--metadata-key) has `task`',
    '--rollout-function-path millrace_trainers.slime.generate_rollout \\',
    '--custom-reward-post-process-path millrace_trainers.slime.post_process_rewards',
  ].join('\n'),
  limits: [
    'slime is not on PyPI: the automatic test runs a stand-in with its documented fields. Its own code at 0.3.1 passes the same test with MILLRACE_SLIME_SOURCES set to its sources.',
    'Optimiser steps need Megatron. Evaluation is not served; use `millrace eval`.',
  ],
});

const row = branch.extend({
  rollout_id: z.string(),
  id: z.int(),
  group: z.int(),
  advantage: z.number(),
  mask_sum: z.int(),
  versions: z.array(z.string()),
  status: z.string(),
});
const converted = z.object({ rows: z.array(row), ledger });
const reportShape = z.object({ settings: settingsReport, own_code: z.boolean(), ours: converted, theirs: converted });

prove(
  ['rollouts', 'branches', 'unscored', 'advantages', 'versions'],
  'samples are exact by token, branches share the id of their rollout, the unscored one is removed, and rewards are normalised over rollouts in their own group as by hand',
  async (context) => {
    await using bed = await openTrainerService();
    const python = await openTrainerPython(torchTrainers);
    const report = reportShape.parse(
      await runTrainer(bed.url, { python, script: join(import.meta.dirname, 'convert.py'), input: { tasks } }),
    );
    context.diagnostic(report.own_code ? "slime's own code" : 'a stand-in for slime');
    const wanted = plannedRewards.map((rewards) => computeAdvantages(rewards, { ddof: 1, epsilon: 1e-6 }));
    settle(checkSettings(bed.backend, report.settings));
    const { rows, ledger: all } = report.ours;
    assert.equal(rows.length, 12 + 3);
    const seen = new Map<number, number>();
    for (const one of rows) {
      const [group, member] = [Math.floor(one.id / 4), one.id % 4];
      const number = seen.get(one.id) ?? 0;
      seen.set(one.id, number + 1);
      assert.equal(one.group, group);
      assertClose(one.advantage, wanted[group]?.[member] ?? Number.NaN, one.rollout_id);
      const { branches } = all[one.rollout_id] ?? assert.fail(one.rollout_id);
      if (plannedRewards[group]?.[member] === null) {
        assert.deepEqual([one.sampled, one.mask_sum, one.status], [[], 0, 'failed']);
        continue;
      }
      assertExact(one, branches[number], one.rollout_id);
      assert.equal(
        one.mask_sum,
        branches.reduce((sum, { sampled }) => sum + sampled.length, 0),
      );
      assert.deepEqual([one.versions, one.status], [['0'], 'completed']);
    }
    // Without our hook, the group whose rewards are all equal gets a signal from the others.
    const uniform = report.theirs.rows.filter(({ group }) => group === 2);
    assert.ok(uniform.every(({ advantage }) => Math.abs(advantage) > 0.1));
  },
);
