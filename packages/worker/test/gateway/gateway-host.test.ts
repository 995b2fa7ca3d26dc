// What a client of a gateway reads while it waits, and when it asks for too much, in the shape of each wire.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { silentLog } from '@millrace/base/log';
import { FakeClock } from '@millrace/testkit';
import { GatewayHost } from '../../src/gateway/gateway-host.ts';
import type { GatewaySession } from '../../src/gateway/gateway-session.ts';

const key = 'mrg-key';
const keyDigest = createHash('sha256').update(key).digest('hex');
const user = { role: 'user', content: 'go' };

/** A host whose sessions answer when they are released. */
async function openBed() {
  const clock = new FakeClock();
  const host = await GatewayHost.open({ host: '127.0.0.1', clock, log: silentLog });
  const released = Promise.withResolvers<void>();
  const running = { count: 0 };
  const session = {
    open: async () => ({
      promptTokens: 3,
      run: async (emit: (event: unknown) => void) => {
        running.count += 1;
        await released.promise; // rejects if the turn fails
        emit({ kind: 'text', text: 'Hello.' });
        emit({ kind: 'end', finish: 'stop', usage: { promptTokens: 3, sampledTokens: 2 } });
      },
    }),
  } as unknown as GatewaySession;
  const added = host.add('g', { session, model: 'm', keyDigest, controlDigest: keyDigest, noteRequest() {}, end() {} });
  return { clock, host, released, running, added, [Symbol.asyncDispose]: () => host[Symbol.asyncDispose]() };
}

function send(url: string, body: unknown, { method = 'POST', shown = key } = {}): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const headers = { authorization: `Bearer ${shown}`, 'content-type': 'application/json' };
  request(url, { method, headers }, resolve)
    .on('error', reject)
    .end(method === 'POST' ? JSON.stringify(body) : undefined);
  return promise;
}

async function untilTimers(clock: FakeClock, count: number): Promise<void> {
  while (clock.timers < count) await new Promise(setImmediate);
}

const streams = [
  ['/v1/chat/completions', { messages: [user], stream: true }],
  ['/v1/responses', { input: 'go', stream: true }],
  ['/v1/messages', { messages: [user], max_tokens: 9, stream: true }],
  ['/v1beta/models/m:streamGenerateContent?alt=sse', { contents: [{ role: 'user', parts: [{ text: 'go' }] }] }],
] as const;

for (const [path, body] of streams)
  test(`${path}: headers come at once, and events with data while nothing is sampled`, async () => {
    await using bed = await openBed();
    const reply = await send(`${bed.host.url}/g${path}`, body);
    assert.equal(reply.statusCode, 200);
    let shown = '';
    reply.setEncoding('utf8').on('data', (piece: string) => {
      shown += piece;
    });
    await untilTimers(bed.clock, 1);
    const countEvents = () => shown.split('\n').filter((line) => line.startsWith('data:')).length;
    const atFirst = countEvents();
    for (let waits = 1; waits <= 3; waits += 1) {
      const before = countEvents();
      bed.clock.advance(10_000);
      while (countEvents() === before) await new Promise(setImmediate);
    }
    assert.ok(countEvents() >= atFirst + 3, shown);
    assert.doesNotMatch(shown, /^:/m, 'a comment does not hold every client');
    bed.released.resolve();
    while (!reply.complete) await new Promise(setImmediate);
    assert.match(shown, /Hello\./);
  });

test('the 65th request at once is asked to come again, and one after the others is answered', async () => {
  await using bed = await openBed();
  const url = `${bed.host.url}/g/v1/chat/completions`;
  const many = Array.from({ length: 64 }, () => send(url, { messages: [user] }));
  while (bed.running.count < 64) await new Promise(setImmediate);
  const late = send(url, { messages: [user] });
  await untilTimers(bed.clock, 65);
  bed.clock.advance(50);
  const refused = await late;
  assert.deepEqual([refused.statusCode, refused.headers['retry-after']], [429, '1']);
  bed.released.resolve();
  for (const reply of await Promise.all(many)) assert.equal(reply.statusCode, 200);
  assert.equal((await send(url, { messages: [user] })).statusCode, 200);
});

test('a WebSocket is refused so that Codex sends a request instead, a wrong key is 401, and an ended gateway 410', async () => {
  await using bed = await openBed();
  const ask = async (path: string, options: Parameters<typeof send>[2] = {}) => {
    const reply = send(`${bed.host.url}${path}`, { messages: [user] }, options);
    await untilTimers(bed.clock, 1);
    bed.clock.advance(50);
    return (await reply).statusCode;
  };
  assert.equal(await ask('/g/v1/responses', { method: 'GET' }), 426);
  assert.equal(await ask('/g/v1/chat/completions', { shown: 'mrg-other' }), 401);
  assert.equal(await ask('/other/v1/chat/completions'), 410);
  bed.added[Symbol.dispose]();
  assert.equal(await ask('/g/v1/chat/completions'), 410);
});

test('a reply that is not streamed begins with white space after a while, and is broken off if its turn then fails', async () => {
  for (const fails of [false, true]) {
    await using bed = await openBed();
    const reply = send(`${bed.host.url}/g/v1/chat/completions`, { messages: [user] });
    await untilTimers(bed.clock, 1);
    bed.clock.advance(60_000);
    const { statusCode, headers } = await reply;
    assert.deepEqual([statusCode, headers['content-type']], [200, 'application/json']);
    const read = text(await reply);
    if (!fails) {
      bed.released.resolve();
      assert.match(await read, /^ {2}\{/);
      assert.equal(JSON.parse(await read).choices[0].message.content, 'Hello.');
      continue;
    }
    let isOver = false;
    const broken = assert.rejects(read, /aborted/).finally(() => {
      isOver = true;
    });
    bed.released.reject(new Error('no backend'));
    while (!isOver) {
      bed.clock.advance(50);
      await new Promise(setImmediate);
    }
    await broken;
  }
});
