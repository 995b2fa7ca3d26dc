// Verdicts on groups by table, and the property that a verdict never depends on missing rewards.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { makeRandom } from '@millrace/testkit/plain';
import { isTooOld, mayBegin } from '../../src/batches/admission.ts';
import { isInformative, type Judging, judgeGroup } from '../../src/batches/judge-group.ts';

const differ = { rule: 'rewards-differ', tolerance: 1e-6 } as const;
const plan: Judging = { group_size: 4, informative: differ };

test('a group is judged by its rewards and those that may still come', () => {
  const table: [string, Partial<Judging>, number[], number, string][] = [
    ['rewards that differ wait for the last sibling', {}, [0, 1, 1], 1, 'wait'],
    ['a complete group with two rewards is delivered', {}, [0, 1, 1, 1], 0, 'deliver 4'],
    ['a complete group with one reward is uniform', {}, [1, 1, 1, 1], 0, 'uniform'],
    ['rewards within the tolerance are one', {}, [1, 1 + 1e-9, 1, 1], 0, 'uniform'],
    ['equal rewards wait while another may come', {}, [1, 1, 1], 1, 'wait'],
    ['what lacks siblings for good is judged by those it has', {}, [0, 1], 0, 'deliver 2'],
    ['fewer rewards than half of the siblings are too few', { group_size: 16 }, [0, 1, 1, 0, 1, 0, 1], 0, 'failed'],
    ['half of the siblings are enough', { group_size: 16 }, [0, 1, 1, 0, 1, 0, 1, 1], 0, 'deliver 8'],
    ['min_rewards allows fewer', { group_size: 16, min_rewards: 2 }, [0, 1], 0, 'deliver 2'],
    ['min_rewards out of reach fails early', { group_size: 16, min_rewards: 15 }, [0, 1], 12, 'failed'],
    ['one reward cannot differ', {}, [1], 0, 'failed'],
    ['nothing can come of nothing', {}, [], 1, 'failed'],
    ['min_samples delivers before the straggler', { min_samples: 3 }, [0, 1, 1], 1, 'deliver 3'],
    ['min_samples waits while rewards are equal', { min_samples: 3 }, [1, 1, 1], 1, 'wait'],
    ['min_samples out of reach fails', { min_samples: 3 }, [0, 1], 0, 'failed'],
    ['min_samples out of reach fails before its last sibling', { min_samples: 3 }, [1], 1, 'failed'],
    ['give_up_after stops equal rewards', { give_up_after: 2 }, [1, 1], 2, 'uniform'],
    ['give_up_after keeps what differs', { give_up_after: 2 }, [1, 0], 2, 'wait'],
    ['a reward too many does not count', {}, [1, 1, 1, 1, 0], 0, 'uniform'],
    ['any delivers equal rewards', { informative: { rule: 'any' } }, [1, 1, 1, 1], 0, 'deliver 4'],
    ['any needs one reward', { informative: { rule: 'any' } }, [], 0, 'failed'],
    ['a mean at the edge is not within', { informative: { rule: 'mean-within', above: 0.25, below: 0.75 } }, [1, 1, 1, 0], 0, 'uniform'],
    ['a mean within is informative', { informative: { rule: 'mean-within', above: 0.2, below: 0.8 } }, [1, 1, 1, 0], 0, 'deliver 4'],
  ];
  for (const [claim, changes, rewards, mayCome, expected] of table) {
    const verdict = judgeGroup({ rewards, mayCome }, { ...plan, ...changes });
    assert.equal(verdict.kind === 'deliver' ? `deliver ${verdict.count}` : verdict.kind, expected, claim);
  }
});

test('every group ends, is delivered only if informative, and is uniform only if not', () => {
  const random = makeRandom(5);
  for (let round = 0; round < 2000; round += 1) {
    const size = 2 + Math.floor(random() * 6);
    const judging: Judging = {
      group_size: size,
      informative: differ,
      ...(random() < 0.5 ? { min_samples: 2 + Math.floor(random() * (size - 1)) } : {}),
      ...(random() < 0.5 ? { give_up_after: 2 + Math.floor(random() * size) } : {}),
    };
    const rewards: number[] = [];
    let mayCome = size + Math.floor(random() * 3);
    let verdict = judgeGroup({ rewards, mayCome }, judging);
    while (verdict.kind === 'wait') {
      assert.ok(mayCome > 0, 'it waits although no reward can come');
      mayCome -= 1;
      if (random() < 0.8) rewards.push(Math.round(random()));
      verdict = judgeGroup({ rewards, mayCome }, judging);
    }
    const counted = rewards.slice(0, size);
    if (verdict.kind === 'deliver') assert.ok(isInformative(counted.slice(0, verdict.count), differ));
    if (verdict.kind === 'uniform')
      assert.ok(!isInformative(counted.slice(0, judging.give_up_after ?? size), differ) || !isInformative(counted, differ));
  }
});

test('a batch starts groups only while the current weights are within its bound', () => {
  assert.equal(mayBegin({ for_version: 3, max_staleness: 1 }, 1), false);
  assert.equal(mayBegin({ for_version: 3, max_staleness: 1 }, 2), true);
  assert.equal(mayBegin({ for_version: 3, max_staleness: 0 }, 2), false);
  assert.equal(mayBegin({ for_version: 3, max_staleness: 0 }, undefined), true);
  assert.equal(mayBegin({ max_staleness: 0 }, 9), true);
});

test('samples are too old when their first version is further back than the bound', () => {
  assert.equal(isTooOld([4, 5], { max_staleness: 1 }, 5), false);
  assert.equal(isTooOld([3, 5], { max_staleness: 1 }, 5), true);
  assert.equal(isTooOld([], { max_staleness: 0 }, 5), false);
  assert.equal(isTooOld([0], { max_staleness: 0 }, undefined), false);
});
