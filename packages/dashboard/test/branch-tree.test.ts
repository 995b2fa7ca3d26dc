// Branches as a tree: from the tokens that they share, or as a gateway reports them.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toBranchTree } from '../src/logic/branch-tree.ts';
import type { SegmentView } from '../src/logic/tokens.ts';

function makeSegment(branch: number, kind: SegmentView['kind'], ids: readonly number[]): SegmentView {
  const numbers = { token_ids: [...ids], logprobs: [], mask: kind === 'sampled' ? (1 as const) : (0 as const) };
  return { kind, turn: kind === 'sampled' ? branch + 1 : 0, text: '', messages: [], ...numbers, ...(branch === 0 ? {} : { branch }) };
}

const segments = [
  makeSegment(0, 'prompt', [1, 2, 3]),
  makeSegment(0, 'sampled', [10, 11]),
  makeSegment(1, 'prompt', [9, 8]),
  makeSegment(1, 'sampled', [7]),
  makeSegment(2, 'prompt', [1, 2, 3, 10, 30]),
  makeSegment(2, 'sampled', [31, 32, 33]),
];
const toLines = (score?: Record<string, unknown>) =>
  toBranchTree(segments, score).map(({ branch, depth, parent, shared, sampled }) => [branch, depth, parent, shared, sampled]);

test('a branch hangs on the one with which it shares most tokens, and one that shares none on nothing', () => {
  assert.deepEqual(toLines(), [
    [0, 0, undefined, 0, 2],
    [2, 1, 0, 4, 3],
    [1, 0, undefined, 0, 1],
  ]);
});

test('a gateway says parents, roles and reasons itself; a report that cannot be one is not used', () => {
  const branches = [
    { branch: 0, parent: null, shared_tokens: 0, role: 'main', reason: 'opening' },
    { branch: 1, parent: 0, shared_tokens: 0, role: 'sub-agent', reason: 'sub-agent', reward: null, tools: ['bash'] },
    { branch: 2, parent: 1, shared_tokens: 2, role: 'side-call', reason: 'compaction' },
  ];
  assert.deepEqual(
    toBranchTree(segments, { gateway: { branches } }).map(({ branch, depth, role }) => [branch, depth, role]),
    [
      [0, 0, 'main'],
      [1, 1, 'sub-agent'],
      [2, 2, 'side-call'],
    ],
  );
  for (const gateway of ['text', { branches: 'none' }, { branches: [null, { branch: 'x' }] }]) assert.equal(toLines({ gateway }).length, 3);
  const ring = [
    { branch: 1, parent: 2 },
    { branch: 2, parent: 1 },
  ];
  assert.equal(toLines({ gateway: { branches: ring } }).length, 3);
});
