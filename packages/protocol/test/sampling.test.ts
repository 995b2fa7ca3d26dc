// The sampling fields that not every engine has, and the date of a submission: what is wrong is refused with the field named.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { batchRequest, sampling, submission } from '@millrace/protocol';

const pathsOf = (result: { readonly error?: { readonly issues: readonly { readonly path: readonly PropertyKey[] }[] } | undefined }) =>
  result.error?.issues.map(({ path }) => path.join('.'));

test('a stop, a bias, a minimum or a structure that no engine takes is refused with the field named', () => {
  for (const [path, given] of [
    ['stop', { stop: '</search>' }],
    ['stop.0', { stop: [''] }],
    ['stop', { stop: Array.from({ length: 65 }, () => 'x') }],
    ['stop_token_ids.0', { stop_token_ids: [-1] }],
    ['stop_token_ids.1', { stop_token_ids: [1, 2 ** 31] }],
    ['include_stop_str_in_output', { include_stop_str_in_output: 1 }],
    ['min_tokens', { min_tokens: -1 }],
    ['min_tokens', { min_tokens: 9, max_tokens: 8 }],
    ['logit_bias.x', { logit_bias: { x: 1 } }],
    ['logit_bias.007', { logit_bias: { '007': 1 } }],
    ['logit_bias.7', { logit_bias: { 7: 101 } }],
    ['structured_outputs', { structured_outputs: {} }],
    ['structured_outputs', { structured_outputs: { regex: 'a', choice: ['a'] } }],
    ['structured_outputs.choice', { structured_outputs: { choice: [] } }],
    ['structured_outputs.json', { structured_outputs: { json: '{}' } }],
    ['structured_outputs', { structured_outputs: { json_object: true } }],
  ] as const)
    assert.ok(pathsOf(sampling.safeParse(given))?.includes(path), `${path}: ${pathsOf(sampling.safeParse(given))}`);
});

test('what engines take is taken, and what is not set stays absent', () => {
  const all = {
    stop: ['</search>'],
    stop_token_ids: [0, 2_147_483_647],
    include_stop_str_in_output: true,
    min_tokens: 3,
    logit_bias: { '0': -100, '49151': 100 },
    structured_outputs: { json: { type: 'object' } },
  };
  const { max_tokens: _, ...parsed } = sampling.parse(all);
  assert.deepEqual({ ...parsed, ...all }, parsed);
  assert.deepEqual(
    Object.keys(sampling.parse({})).filter((name) => name in all),
    [],
  );
});

test('a date is a day or a time with its offset, in a submission and in a batch', () => {
  const ask = (date: unknown) => submission.safeParse({ scenario: 'math', task: {}, date });
  for (const date of ['2026-01-31', '2026-01-31T09:00:00Z', '2026-01-31T09:00:00.5+02:00']) assert.equal(ask(date).data?.date, date);
  for (const date of ['yesterday', '2026-02-30', '2026-01-31T09:00:00', 1_700_000_000, '']) assert.deepEqual(pathsOf(ask(date)), ['date']);
  const batch = batchRequest.safeParse({ scenario: 'math', group_size: 2, target: 1, date: 'x' });
  assert.deepEqual(pathsOf(batch), ['date']);
});
