// Routed experts are taken out of a reply before it is parsed, however its chunks are cut.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runNow } from '@millrace/base/pace';
import { takeExperts } from '../../src/reply/take-experts.ts';

function take(chunks: readonly string[]) {
  const { rest, experts, isPartial } = runNow(takeExperts(chunks.map((chunk) => Buffer.from(chunk))));
  return [Buffer.concat(rest).toString(), experts && Buffer.concat(experts).toString(), isPartial];
}

const cases: readonly (readonly [string, readonly unknown[]])[] = [
  ['{"a":1,"routed_experts":"QUJD","b":2}', ['{"a":1,"routed_experts":"","b":2}', 'QUJD', undefined]],
  ['{"routed_experts": "QUJD"}', ['{"routed_experts": ""}', 'QUJD', undefined]],
  [
    'data: {"routed_experts":null}\n\ndata: {"routed_experts":"QQ=="}\n\n',
    ['data: {"routed_experts":null}\n\ndata: {"routed_experts":""}\n\n', 'QQ==', undefined],
  ],
  ...['{"routed_experts":', '{"routed_experts": ', '{"routed_experts":"QUJ'].map((part) => [part, [part, undefined, true]] as const),
  ['{"routed_experts":null}', ['{"routed_experts":null}', undefined, undefined]],
  [`{"text":"${'x'.repeat(100)}"}`, [`{"text":"${'x'.repeat(100)}"}`, undefined, undefined]],
];

test('experts are taken out of a reply as bytes, wherever they are and wherever its chunks end', () => {
  for (const [text, taken] of cases) {
    assert.deepEqual(take([text]), taken);
    assert.deepEqual(take([...text]), taken, 'a chunk for each character');
    for (let at = 0; at <= text.length; at++) assert.deepEqual(take([text.slice(0, at), text.slice(at)]), taken, `two chunks, at ${at}`);
  }
});
