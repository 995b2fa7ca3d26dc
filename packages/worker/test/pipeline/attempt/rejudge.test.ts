// Results that are judged twice: the first reward counts, and a verifier that gives another one is reported as flaky.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type Fields, silentLog } from '@millrace/base/log';
import { type RolloutId, rolloutId } from '@millrace/protocol';
import { probeBubblewrap } from '@millrace/sandbox';
import type { Scenario } from '@millrace/scenarios';
import { z } from 'zod';
import { isRejudged } from '../../../src/pipeline/attempt/rejudge.ts';
import { WorkerBed } from '../worker-bed.ts';

const probe = await probeBubblewrap();
const skip = probe.ok ? false : `${probe.reason}; try: ${probe.remedy}`;

/** Judges with these rewards, one after the other; an error is thrown. */
function makeScenario(rewards: (number | Error)[]): Scenario {
  return {
    name: 'own',
    task: z.unknown(),
    init: () => ({ messages: [{ role: 'user', content: 'go' }], tools: ['finish'] }),
    evaluate() {
      const next = rewards.shift();
      if (typeof next !== 'number') throw next ?? new Error('judged too often');
      return { reward: next, details: { of: 'the first' } };
    },
  };
}

describe('judging twice', { skip, timeout: 120_000 }, () => {
  const cases: [string, (number | Error)[], unknown, number][] = [
    ['the same reward again is recorded', [1, 1], { reward: 1, same: true }, 0],
    ['another reward is flaky, and the first counts', [1, 0], { reward: 0, same: false }, 1],
    ['a verifier that fails the second time is flaky', [1, new Error('no luck')], { reward: null, same: false }, 1],
  ];
  for (const [title, rewards, rejudged, warnings] of cases) {
    test(title, async () => {
      const flaky: Fields[] = [];
      const log = { ...silentLog, warn: (event: string, fields: Fields = {}) => event === 'verdict-flaky' && flaky.push(fields) };
      await using bed = await WorkerBed.open({ scenarios: [makeScenario(rewards)], pipeline: { rejudgeShare: 1 }, log });
      await bed.startWorker();
      const { state, result } = await bed.ended(await bed.submit({ id: 'twice', scenario: 'own', task: {} }));
      assert.deepEqual([state, result?.reward, result?.score], ['done', 1, { of: 'the first', rejudged }]);
      assert.equal(flaky.length, warnings);
      const { events } = await bed.store.events(0, { limit: 100, kinds: ['rollout-end'] });
      assert.deepEqual(events[0]?.data.rejudged, rejudged);
    });
  }

  test('the share decides which rollouts are judged twice, and always in the same way', () => {
    const ids: RolloutId[] = Array.from({ length: 2000 }, (_, index) => rolloutId.parse(`r${index}`));
    assert.equal(ids.filter((id) => isRejudged(id, 0)).length, 0);
    assert.equal(ids.filter((id) => isRejudged(id, 1)).length, 2000);
    const some = ids.filter((id) => isRejudged(id, 0.1)).length;
    assert.ok(some > 140 && some < 260, `${some} of 2000`);
  });
});
