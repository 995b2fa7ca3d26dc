// Which rollouts pass the filters of `millrace ls`.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { rolloutView } from '@millrace/protocol';
import golden from '../../../protocol/test/golden/rollout.json' with { type: 'json' };
import { parseArguments } from '../../src/command/parse-arguments.ts';
import { listCommand } from '../../src/rollouts/list.ts';
import { toListFilter } from '../../src/rollouts/list-filter.ts';

const done = rolloutView.parse(golden);
const failure = { code: 'sandbox-limit', message: 'Out of memory', blame: 'policy', retryable: false, stage: 'run', attempt: 1 } as const;
const passes = (view: object, ...options: string[]) => toListFilter(parseArguments(listCommand, options))?.({ ...done, ...view });

test('a reward passes its own value, a range, and a range that is open on one side', () => {
  for (const range of ['0.5', '0..1', '..0.5', '0.5..', '-1..0.5']) assert.equal(passes({ reward: 0.5 }, `--reward=${range}`), true, range);
  for (const range of ['1', '0.6..1', '..0.4', '0.51..', 'none']) assert.equal(passes({ reward: 0.5 }, `--reward=${range}`), false, range);
  assert.deepEqual([passes({ reward: null }, '--reward', 'none'), passes({ reward: null }, '--reward', '..1')], [true, false]);
});

test('blame, stop reason and text pass what has them, and all that are given count', () => {
  assert.deepEqual([passes({ failure }, '--blame', 'policy'), passes({ failure: null }, '--blame', 'policy')], [true, false]);
  const result = { ...done.result, stop_reason: 'max_turns' };
  assert.deepEqual(
    [passes({ result }, '--stop-reason', 'max_turns'), passes({ result: null }, '--stop-reason', 'max_turns')],
    [true, false],
  );
  assert.deepEqual([passes({ failure }, '--text', 'out of MEMORY'), passes({ failure: null }, '--text', 'out of memory')], [true, false]);
  assert.equal(passes({ failure, reward: 1 }, '--blame', 'policy', '--reward', '0'), false);
  assert.equal(passes({}), undefined);
});
