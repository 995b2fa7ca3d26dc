// The weights of each token, as the engines report them: exactly the tokens, or refused.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RolloutError } from '@millrace/protocol';
import { findRecording } from '@millrace/testkit';
import { readVersionSpans, toPolicyVersions } from '../../src/reply/weight-versions.ts';

const span = (version: unknown, start: unknown, end: unknown) => ({ version, start, end });

test('spans that cover the tokens are read, with a version where the name is one', () => {
  const spans = readVersionSpans([span('3', 0, 20), span('4', 20, 60)], 60) ?? assert.fail();
  assert.deepEqual(spans, [
    { version: 3, start: 0, end: 20 },
    { version: 4, start: 20, end: 60 },
  ]);
  assert.deepEqual(toPolicyVersions(spans), { first: 3, last: 4 });
  assert.deepEqual(readVersionSpans([span('default', 0, 2), span(7, 2, 3)], 3), [
    { start: 0, end: 2 },
    { version: 7, start: 2, end: 3 },
  ]);
});

test('names that are no policy versions, and replies without tokens, say nothing', () => {
  for (const [value, tokens] of [
    [undefined, 5],
    [null, 5],
    [[span('default', 0, 5)], 5],
    [[span('step-7', 0, 2), span('1.5', 2, 5)], 5],
    [[], 0],
    [[span('3', 0, 0)], 0],
  ] as const)
    assert.equal(readVersionSpans(value, tokens), undefined);
});

test('spans that do not cover exactly the tokens are refused', () => {
  for (const value of [
    [],
    'default',
    {},
    [span('3', 0, 4)],
    [span('3', 0, 6)],
    [span('3', 1, 5)],
    [span('3', 0, 2), span('4', 3, 5)],
    [span('3', 0, 3), span('4', 2, 5)],
    [span('3', 0, 0), span('4', 0, 5)],
    [span('3', 0, '5')],
    [{ version: '3' }],
    [7],
  ])
    assert.throws(
      () => readVersionSpans(value, 5),
      (error) => error instanceof RolloutError && error.code === 'backend-bad-reply' && /do not cover its 5 tokens/.test(error.message),
      JSON.stringify(value),
    );
});

test('a request of the real vLLM that was kept over an update has the two spans that it reports', () => {
  const [call] = findRecording('vllm', 'generate-pause-keep').exchanges;
  const events = (call?.reply?.events ?? []).flatMap((event) => (event.includes('[DONE]') ? [] : JSON.parse(event.slice(6))));
  const choices = events.flatMap((event) => event.choices);
  const tokens = events.at(-1).usage.completion_tokens;
  const reported = choices.at(-1).weight_versions;
  const numbered = reported.map((one: object, at: number) => ({ ...one, version: `${at + 3}` }));
  assert.deepEqual(
    readVersionSpans(numbered, tokens)?.map(({ version }) => version),
    [3, 4],
  );
  assert.equal(readVersionSpans(reported, tokens), undefined);
});
