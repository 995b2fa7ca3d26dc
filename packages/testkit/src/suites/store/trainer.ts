// The store's promises about what trainers post back.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TrainerSample } from '@millrace/protocol';
import type { NewTrainerStep } from '@millrace/store';
import { makeId, type OpenBed, openTimedBed } from './bed/bed.ts';

function makeStep(step: number, changes: Partial<NewTrainerStep> = {}): NewTrainerStep {
  const nothing = { policy_version: step + 1, loss: 0.5, kl: null, entropy: 1.25, clip_share: 0, metrics: { lr: 1e-6 } };
  return { run: 'a', step, ...nothing, unknown_samples: 0, mismatch: [], alarm: null, ...changes };
}

const sample: TrainerSample = { rollout_id: makeId('r-1'), branch: 0, advantage: -0.5, logprobs: [-0.25, -1.5] };

export function defineTrainerTests(openBed: OpenBed): void {
  test('steps of a trainer are read in order, page by page and from both ends, in another process too', async () => {
    await using bed = await openTimedBed(openBed);
    for (const step of [2, 0, 1]) await bed.store.trainer.putTrainerStep(makeStep(step), []);
    await bed.store.trainer.putTrainerStep(makeStep(7, { run: 'b' }), []);
    const { trainer } = await bed.another();
    const first = await trainer.trainerSteps({ run: 'a', order: 'oldest', limit: 2 });
    assert.deepEqual(
      first.map(({ step, loss, metrics }) => [step, loss, metrics]),
      [0, 1].map((step) => [step, 0.5, { lr: 1e-6 }]),
    );
    assert.deepEqual(
      (await trainer.trainerSteps({ run: 'a', order: 'oldest', after: 1, limit: 2 })).map(({ step }) => step),
      [2],
    );
    assert.deepEqual(
      (await trainer.trainerSteps({ run: 'a', order: 'newest', after: 2, limit: 9 })).map(({ step }) => step),
      [1, 0],
    );
    assert.deepEqual((await trainer.trainerRuns()).map(({ run, steps }) => [run, steps]).toSorted(), [
      ['a', 3],
      ['b', 1],
    ]);
  });

  test('a step that is posted again replaces itself and its samples', async () => {
    await using bed = await openTimedBed(openBed);
    const { trainer } = bed.store;
    await trainer.putTrainerStep(makeStep(3), [sample, { ...sample, branch: 1 }]);
    await trainer.putTrainerStep(makeStep(4), [{ ...sample, advantage: 2 }]);
    const again = { ...sample, kl: [0, 0.125] };
    await trainer.putTrainerStep(makeStep(3, { loss: 0.25 }), [again]);
    const steps = await trainer.trainerSteps({ run: 'a', order: 'oldest', limit: 9 });
    assert.deepEqual(
      steps.map(({ step, loss, samples }) => [step, loss, samples]),
      [
        [3, 0.25, 1],
        [4, 0.5, 1],
      ],
    );
    const found = await trainer.trainerSamples(makeId('r-1'));
    assert.deepEqual(
      found.toSorted((one, other) => one.step - other.step).map(({ step, policyVersion, sample: one }) => [step, policyVersion, one]),
      [
        [3, 4, again],
        [4, 5, { ...sample, advantage: 2 }],
      ],
    );
    assert.deepEqual(await trainer.trainerSamples(makeId('r-2')), []);
  });

  test('a step has an event with its mismatch, weighted by tokens', async () => {
    await using bed = await openTimedBed(openBed);
    const part = { policy_version: 1, most_abs: 1, kl: 0 };
    const mismatch = [
      { ...part, backend: 'x', tokens: 30, mean_abs: 0.5 },
      { ...part, backend: 'y', tokens: 10, mean_abs: 0.1 },
    ];
    await bed.store.trainer.putTrainerStep(makeStep(1, { mismatch, alarm: 'it grew' }), []);
    const { events } = await bed.store.events(0, { limit: 9, kinds: ['trainer-step'] });
    assert.deepEqual(
      events.map(({ data }) => data),
      [{ run: 'a', step: 1, policy_version: 2, mean_abs: 0.4, alarm: 'it grew' }],
    );
  });

  test('samples of a trainer go at the age of rollouts, its steps at ten times that', async () => {
    await using bed = await openTimedBed(openBed);
    const { trainer } = bed.store;
    await trainer.putTrainerStep(makeStep(1), [sample]);
    const ages = { endedMs: 1000, eventsMs: 1000 };
    const kept = async () => [
      (await trainer.trainerSamples(makeId('r-1'))).length,
      (await trainer.trainerSteps({ run: 'a', order: 'oldest', limit: 9 })).length,
    ];
    const expected: readonly (readonly [number, readonly number[]])[] = [
      [500, [1, 1]],
      [1000, [0, 1]],
      [8000, [0, 1]],
      [1000, [0, 0]],
    ];
    for (const [advanceMs, left] of expected) {
      await bed.clock.advance(advanceMs);
      await bed.store.retain(ages);
      assert.deepEqual(await kept(), left);
    }
  });
}
