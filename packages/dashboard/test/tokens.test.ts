// Tokens of a trajectory: columns, blocks, branches, colours, and where siblings part.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { colourOf, logprobClass, toLegend, toPercent } from '../src/logic/colours.ts';
import { toConversation } from '../src/logic/conversation.ts';
import { findDivergence } from '../src/logic/diverge.ts';
import { listBranches, type SegmentView, summariseLogprobs, toBlocks, toColumns } from '../src/logic/tokens.ts';

function makeSegment(kind: SegmentView['kind'], ids: readonly number[], more: Partial<SegmentView> = {}): SegmentView {
  const isSampled = kind === 'sampled';
  const logprobs = isSampled ? ids.map((id) => -id / 100) : [];
  return { kind, turn: isSampled ? 1 : 0, text: '', messages: [], token_ids: [...ids], logprobs, mask: isSampled ? 1 : 0, ...more };
}

const prompt = makeSegment('prompt', [1, 2, 3]);

test('columns hold every token of the branch with its segment and its logprob', () => {
  const { ids, segment, logprob } = toColumns([prompt, makeSegment('sampled', [10, 20])]);
  assert.deepEqual([...ids], [1, 2, 3, 10, 20]);
  assert.deepEqual([...segment], [0, 0, 0, 1, 1]);
  assert.deepEqual([...logprob.subarray(0, 3)].map(Number.isNaN), [true, true, true]);
  assert.ok(Math.abs((logprob[4] ?? 0) + 0.2) < 1e-6);
});

test('blocks are bounded and never cross a segment', () => {
  const columns = toColumns([makeSegment('prompt', [1, 2, 3, 4, 5]), makeSegment('sampled', [6, 7])]);
  assert.deepEqual(toBlocks(columns, 2), [
    { segment: 0, from: 0, to: 2, isFirst: true },
    { segment: 0, from: 2, to: 4, isFirst: false },
    { segment: 0, from: 4, to: 5, isFirst: false },
    { segment: 1, from: 5, to: 7, isFirst: true },
  ]);
  assert.deepEqual(toBlocks(toColumns([]), 2), []);
});

test('branches keep their segments apart', () => {
  const segments = [
    prompt,
    makeSegment('sampled', [4]),
    makeSegment('prompt', [1, 9], { branch: 1 }),
    makeSegment('sampled', [5], { branch: 1 }),
  ];
  assert.deepEqual(
    [...listBranches(segments)],
    [
      [0, [0, 1]],
      [1, [2, 3]],
    ],
  );
  assert.deepEqual([...toColumns(segments, listBranches(segments).get(1)).ids], [1, 9, 5]);
});

test('a token is coloured by mask, logprob, version or source', () => {
  const sampled = makeSegment('sampled', [4], { policy_versions: { first: 9, last: 10 } });
  assert.equal(colourOf('mask', sampled, { logprob: -1 }), 'tk-trained');
  assert.equal(colourOf('mask', prompt, { logprob: Number.NaN }), 'tk-context');
  assert.equal(colourOf('logprob', sampled, { logprob: -0.001 }), 'tk-lp0');
  assert.equal(colourOf('logprob', sampled, { logprob: -9 }), 'tk-lp8');
  assert.equal(colourOf('logprob', prompt, { logprob: Number.NaN }), 'tk-none');
  assert.equal(colourOf('version', sampled, { logprob: -1 }), 'tk-c2');
  assert.equal(colourOf('source', prompt, { logprob: Number.NaN }), 'tk-prompt');
  assert.equal(logprobClass(Number.NEGATIVE_INFINITY), 8);
  assert.ok(toLegend('version', [sampled]).some(({ label }) => label === 'version 10'));
  assert.equal(toPercent(Math.log(0.5)), '50 %');
});

test('siblings part at the first token that not all share', () => {
  const left = [prompt, makeSegment('sampled', [7, 8, 9])];
  const right = [prompt, makeSegment('sampled', [7, 5])];
  assert.deepEqual(findDivergence([left, right]), {
    tokens: 4,
    at: [
      { segment: 1, offset: 1 },
      { segment: 1, offset: 1 },
    ],
  });
  assert.deepEqual(findDivergence([left, left]), { tokens: 6, at: [undefined, undefined] });
  assert.deepEqual(findDivergence([left, [prompt]]).at, [{ segment: 1, offset: 0 }, undefined]);
  assert.deepEqual(findDivergence([]), { tokens: 0, at: [] });
});

test('the summary of logprobs counts sampled tokens only', () => {
  const summary = summariseLogprobs([Number.NaN, -1, -5]);
  assert.deepEqual(summary, { count: 2, mean: -3, lowest: -5, surprising: 1 });
  assert.equal(summariseLogprobs([Number.NaN]), undefined);
});

test('the conversation of a branch has its messages in order, with their turns', () => {
  const user = { role: 'user' as const, content: 'hi' };
  const answer = { role: 'assistant' as const, content: 'yes' };
  const entries = toConversation([
    makeSegment('prompt', [1], { messages: [user] }),
    makeSegment('sampled', [2, 3], { messages: [answer], backend: 'gpu-0' as NonNullable<SegmentView['backend']> }),
  ]);
  assert.deepEqual(
    entries.map(({ message, turn, facts }) => [message.role, turn, facts?.tokens]),
    [
      ['user', 0, 1],
      ['assistant', 1, 2],
    ],
  );
});
