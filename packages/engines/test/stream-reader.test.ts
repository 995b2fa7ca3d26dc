// Reading a streamed reply: in steps, and in the order of its bytes.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Clock, systemClock } from '@millrace/base/clock';
import { Pace } from '@millrace/base/pace';
import { sampling } from '@millrace/protocol';
import { FakeClock } from '@millrace/testkit';
import { StreamReader } from '../src/stream-reader.ts';
import { completionsRoute } from '../src/vllm-wire.ts';

const tokens = 20_000;
const request = {
  promptJson: Buffer.from('1'),
  promptTokens: 1,
  sampling: sampling.parse({}),
  maxTokens: tokens,
  stopTokenIds: [],
  sessionId: 's',
  requestId: 'r',
  signal: new AbortController().signal,
  isCollected: true,
};

function makeEvents(): Buffer {
  const events = Array.from({ length: tokens }, (_, id) => {
    const logprobs = { tokens: [`token_id:${id}`], token_logprobs: [-0.5] };
    return `data: ${JSON.stringify({ choices: [{ logprobs, finish_reason: id === tokens - 1 ? 'length' : null }] })}\n\n`;
  });
  return Buffer.from(events.join(''));
}

function openReader(clock: Clock = systemClock) {
  const stream = completionsRoute.openStream?.(request);
  assert.ok(stream);
  return new StreamReader(stream, { request, checkEvent() {}, pace: new Pace(), clock });
}

test('a long stream is read in many turns of the event loop, with every token once and in order', async () => {
  const reader = openReader();
  const events = makeEvents();
  for (let at = 0; at < events.length; at += 60_000) reader.onChunk(events.subarray(at, at + 60_000));
  let turns = 0;
  const counter = setInterval(() => (turns += 1), 0);
  const { tokenIds } = await reader.end(false);
  clearInterval(counter);
  assert.ok(turns > 3, `${turns} turns`);
  assert.deepEqual(
    [...tokenIds],
    Array.from({ length: tokens }, (_, id) => id),
  );
});

test('chunks that arrive while the waiting ones are read are read after them', async () => {
  let now = 0;
  const reader = openReader({ ...systemClock, monotonic: () => now });
  const events = makeEvents();
  const half = Math.floor(events.length / 2);
  now = 2000;
  reader.onChunk(events.subarray(0, half));
  now = 4000;
  await new Promise((resolve) => setImmediate(resolve));
  reader.onChunk(events.subarray(half));
  const { tokenIds } = await reader.end(false);
  assert.deepEqual(
    [...tokenIds],
    Array.from({ length: tokens }, (_, id) => id),
  );
});

test('a caller that watches the tokens of a call that breaks gets all that had arrived', () => {
  const clock = new FakeClock();
  const seen: number[] = [];
  const watched = { ...request, onTokens: (ids: Int32Array) => void seen.push(...ids) };
  const stream = completionsRoute.openStream?.(watched);
  assert.ok(stream);
  const reader = new StreamReader(stream, { request: watched, checkEvent() {}, pace: new Pace(clock), clock });
  const events = makeEvents().toString().split('\n\n').slice(0, 6);
  for (const event of events) reader.onChunk(Buffer.from(`${event}\n\n`));
  assert.deepEqual(seen, [0], 'the others wait for their beat');
  reader[Symbol.dispose]();
  assert.deepEqual(seen, [0, 1, 2, 3, 4, 5]);
});

test('a stream that is not valid is refused with the next chunk', () => {
  const watched = { ...request, onTokens: () => {} };
  const stream = completionsRoute.openStream?.(watched);
  assert.ok(stream);
  const reader = new StreamReader(stream, { request: watched, checkEvent() {}, pace: new Pace(new FakeClock()) });
  assert.throws(() => reader.onChunk(Buffer.from('data: {"choices": 7}\n\n')), /choices/);
});
