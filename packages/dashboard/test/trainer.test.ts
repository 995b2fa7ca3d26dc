// What trainers posted back, at the tokens that it belongs to.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { colourOf } from '../src/logic/colours.ts';
import type { SegmentView } from '../src/logic/tokens.ts';
import { findWeightChanges, toMismatchLines, toTrainerColumns } from '../src/logic/trainer.ts';

const make = (kind: SegmentView['kind'], tokens: number, more: Partial<SegmentView> = {}): SegmentView => ({
  kind,
  turn: 1,
  text: '',
  messages: [],
  token_ids: Array(tokens).fill(7),
  logprobs: kind === 'sampled' ? Array(tokens).fill(-1) : [],
  mask: kind === 'sampled' ? 1 : 0,
  ...more,
});

const base = { rollout_id: 'r' as never, run: 'a', step: 3, at: '', policy_version: 4 };

test('numbers of a trainer lie on the sampled tokens of their branch, over all turns', () => {
  const segments = [make('prompt', 2), make('sampled', 2), make('observation', 1), make('sampled', 1), make('sampled', 2, { branch: 1 })];
  const sample = { ...base, branch: 0, advantage: -0.5, logprobs: [-1, -1.5, -3] };
  const columns = toTrainerColumns(segments, 0, { samples: [sample] });
  assert.deepEqual([...(columns?.recomputed ?? [])], [Number.NaN, Number.NaN, -1, -1.5, Number.NaN, -3]);
  assert.deepEqual([...(columns?.advantage ?? [])], [Number.NaN, Number.NaN, -0.5, -0.5, Number.NaN, -0.5]);
  assert.ok(columns?.kl.every(Number.isNaN));
  assert.equal(toTrainerColumns(segments, 1, { samples: [sample] }), undefined);
});

test('the newest step of a branch counts, and advantages of tokens go before that of the branch', () => {
  const samples = [
    { ...base, step: 5, branch: 0, advantage: 9, advantages: [1, -1] },
    { ...base, step: 4, branch: 0, advantage: 2 },
  ];
  const columns = toTrainerColumns([make('sampled', 2)], 0, { samples });
  assert.deepEqual([columns?.step, ...(columns?.advantage ?? [])], [5, 1, -1]);
});

test('a token is coloured by how far its logprobs are apart, and not at all where nothing was posted', () => {
  const segment = make('sampled', 1);
  assert.equal(colourOf('mismatch', segment, { logprob: -1, recomputed: -1.002 }), 'tk-lp0');
  assert.equal(colourOf('mismatch', segment, { logprob: -1, recomputed: -9 }), 'tk-lp8');
  assert.equal(colourOf('mismatch', segment, { logprob: -1 }), 'tk-none');
  assert.equal(colourOf('advantage', segment, { logprob: -1, advantage: 0 }), 'tk-context');
});

test('weights changed where the version differs from the step before', () => {
  const versions = [3, 3, 4, null, 6];
  assert.deepEqual(findWeightChanges(versions.map((policy_version, step) => ({ step, policy_version }))), [2, 4]);
});

test('each backend has a line, weighted by tokens over its versions, with gaps where it had none', () => {
  const part = (backend: string, tokens: number, mean_abs: number) => ({
    backend,
    policy_version: 1,
    tokens,
    mean_abs,
    most_abs: 1,
    kl: 0,
  });
  const steps = [{ mismatch: [part('b', 10, 0.5), part('b', 30, 0.1), part('a', 1, 1)] }, { mismatch: [part('a', 2, 2)] }];
  assert.deepEqual(toMismatchLines(steps), [
    { label: 'a', values: [1, 2] },
    { label: 'b', values: [0.2, null] },
  ]);
});
