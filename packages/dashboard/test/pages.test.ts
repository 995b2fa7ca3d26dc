// What pages are made of: addresses, event lines, patches, time lines and numbers.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseAddress, toAddress } from '../src/logic/address.ts';
import { openEventLines } from '../src/logic/event-lines.ts';
import { formatAge, formatBytes, formatCount, formatMs, formatNumber, formatShare } from '../src/logic/format.ts';
import { isPatch, parsePatch } from '../src/logic/patch.ts';
import { toStages, toTurnSpans } from '../src/logic/timeline.ts';

test('an address leads back to the same page, whatever the id', () => {
  for (const id of ['a', 'step-1:2:3', 'a/b?c#d', 'ü %']) {
    const address = parseAddress(toAddress('rollout', id, { tab: 'tokens', none: undefined }));
    assert.deepEqual(address, { page: 'rollout', subject: id, query: { tab: 'tokens' } });
  }
  assert.deepEqual(parseAddress(''), { page: 'now', query: {} });
  assert.equal(parseAddress('#/rollout/%E0%A4%A').subject, '%E0%A4%A', 'a broken address is shown as it is');
});

test('messages are whole, however the stream was cut', () => {
  const text = ': open\n\nid: 1\nevent: a\ndata: {"x":1}\n\nid: 2\ndata: {"x":2}\n\n';
  for (let cut = 1; cut < text.length; cut++) {
    const read = openEventLines();
    const messages = [...read(text.slice(0, cut)), ...read(text.slice(cut))];
    assert.deepEqual(messages, [
      { id: '1', data: '{"x":1}' },
      { id: '2', data: '{"x":2}' },
    ]);
  }
});

const diff = 'diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -3,2 +3,2 @@ fn\n same\n-old\n+new\n\\ No newline at end of file\n';

test('a patch has the numbers of its lines', () => {
  assert.equal(isPatch(diff), true);
  assert.equal(isPatch('--- a list\n+++ of things'), false);
  assert.deepEqual(parsePatch(diff).slice(3), [
    { kind: 'hunk', text: '@@ -3,2 +3,2 @@ fn' },
    { kind: 'same', text: 'same', before: 3, after: 3 },
    { kind: 'remove', text: 'old', before: 4 },
    { kind: 'add', text: 'new', after: 4 },
    { kind: 'note', text: '\\ No newline at end of file' },
  ]);
});

test('stages follow each other, and those that took no time are left out', () => {
  const timings = {
    queued_ms: 5,
    init_ms: 10,
    ready_ms: 0,
    run_ms: 20,
    cache_wait_ms: 0,
    evaluate_wait_ms: 0,
    evaluate_ms: 3,
    model_ms: 15,
    tool_ms: 5,
  };
  assert.deepEqual(
    toStages(timings).map(({ label, startMs, ms }) => [label, startMs, ms]),
    [
      ['queued', 0, 5],
      ['init', 5, 10],
      ['run', 15, 20],
      ['evaluate', 35, 3],
    ],
  );
});

test('the model of a turn comes before its tools', () => {
  const spans = toTurnSpans([
    { turn: 1, model_ms: 10, tool_ms: 5, at: 1015 },
    { turn: 2, model_ms: 10, tool_ms: 0, at: 1030 },
  ]);
  assert.deepEqual(
    spans.map(({ kind, startMs, ms }) => [kind, startMs, ms]),
    [
      ['model', 0, 10],
      ['tool', 10, 5],
      ['model', 20, 10],
    ],
  );
});

test('numbers are short', () => {
  assert.deepEqual([formatCount(9999), formatCount(12_345), formatCount(2_500_000)], ['9,999', '12.3k', '2.5M']);
  assert.deepEqual([formatNumber(0.12345), formatNumber(1), formatNumber(null)], ['0.123', '1', '–']);
  assert.deepEqual(
    [formatMs(0.01), formatMs(1.25), formatMs(1500), formatMs(90_000), formatMs(7_200_000)],
    ['0 ms', '1.3 ms', '1.50 s', '1 min 30 s', '2 h 0 min'],
  );
  assert.deepEqual([formatBytes(512), formatBytes(2048), formatBytes(5 * 2 ** 30)], ['512 B', '2.0 KiB', '5.0 GiB']);
  assert.deepEqual([formatAge(1000, 38_400), formatAge(null, 0), formatShare(0.042), formatShare(0.5)], ['37 s ago', '–', '4.2 %', '50 %']);
});
