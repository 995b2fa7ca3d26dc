// The on-policy check can fail: it finds a changed id, a changed log-probability and wrong weights.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Segment, Trajectory } from '@millrace/protocol';
import { logprobsAt, makeNetwork } from '../model/network.ts';
import { makeRandom } from '../model/random.ts';
import { checkOnPolicy, flatten } from './on-policy.ts';

const shape = { vocabulary: 11, positions: 16, width: 8, heads: 2, layers: 1 };
const network = makeNetwork(shape, makeRandom('sampled'));
const versions = new Map([[0, network]]);
const ids = [3, 1, 4, 1, 5, 9];
const places = [2, 3, 5];

function makeTrajectory(change: { ids?: readonly number[]; off?: number; version?: number } = {}): Trajectory {
  const logprobs = Float32Array.from(logprobsAt(network, ids, { places }).data);
  logprobs[1] = (logprobs[1] ?? 0) + (change.off ?? 0);
  const all = Int32Array.from(change.ids ?? ids);
  const version = change.version ?? 0;
  const none = new Float32Array(0);
  const segment = (kind: Segment['kind'], range: readonly [number, number], own: Float32Array): Segment => ({
    kind,
    turn: 0,
    text: '',
    messages: [],
    tokenIds: all.slice(...range),
    logprobs: own,
    ...(kind === 'sampled' ? { policy_versions: { first: version, last: version } } : {}),
  });
  const segments = [
    segment('prompt', [0, 2], none),
    segment('sampled', [2, 4], logprobs.slice(0, 2)),
    segment('observation', [4, 5], none),
    segment('sampled', [5, 6], logprobs.slice(2)),
  ];
  return { rolloutId: 'one', attempt: 1, model: '', tools: [], segments };
}

test('a trajectory is the ids in a row, and the places of the sampled ones', () => {
  const flat = flatten(makeTrajectory());
  assert.deepEqual([...flat.tokenIds], ids);
  assert.deepEqual(flat.places, places);
});

test('what the policy sampled is confirmed, token for token', () => {
  const count = { tokens: 0, largest: 0 };
  checkOnPolicy(makeTrajectory(), versions, count);
  assert.equal(count.tokens, 3);
  assert.ok(count.largest < 1e-6);
});

test('a changed id, a changed log-probability and wrong weights are each found', () => {
  const check = (trajectory: Trajectory, own = versions) => checkOnPolicy(trajectory, own, { tokens: 0, largest: 0 });
  assert.throws(() => check(makeTrajectory({ ids: [3, 1, 4, 1, 6, 9] })), /one: token 5 has log-probability/);
  assert.throws(() => check(makeTrajectory({ off: 1e-4 })), /one: token 3/);
  assert.throws(() => check(makeTrajectory(), new Map([[0, makeNetwork(shape, makeRandom('others'))]])), /one: token 2/);
  assert.throws(() => check(makeTrajectory({ version: 1 })), /unknown weights/);
});
