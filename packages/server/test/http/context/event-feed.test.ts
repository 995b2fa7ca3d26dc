// Server-sent events over a real listener: order, resuming, slow readers, heartbeats.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { systemClock } from '@millrace/base/clock';
import type { NewEvent, Store } from '@millrace/store';
import { EventFeed } from '../../../src/http/context/event-feed.ts';
import { openFloor, readEvents } from '../floor.ts';

async function open(url: string, headers: Record<string, string> = {}): Promise<IncomingMessage> {
  const [response] = await once(get(url, { headers }), 'response');
  return response;
}

const turn = (text = ''): NewEvent => ({ kind: 'turn-end', data: { text } });
const turns = (count: number, text = '') => Array.from({ length: count }, () => turn(text));

async function append(store: Store, count: number, text = ''): Promise<void> {
  for (let left = count; left > 0; left -= 500) await store.appendEvents(turns(Math.min(left, 500), text));
}

test('a reader without a position gets only new events, each with its id and kind', async () => {
  await using floor = await openFloor();
  await floor.store.appendEvents(turns(3));
  const stream = await open(`${await floor.listen()}/v1/events`);
  assert.equal(stream.headers['content-type'], 'text/event-stream');
  const id = await floor.submit();
  const [event] = await readEvents(stream, (events) => events.length > 0);
  assert.deepEqual([event?.kind, event?.rollout_id], ['rollout-queue', id]);
});

test('a reader resumes after the id it has seen, by query or by header, without a gap or a repeat', async () => {
  await using floor = await openFloor();
  const address = await floor.listen();
  await append(floor.store, 1200);
  const ids = async (stream: IncomingMessage, last: number) =>
    (await readEvents(stream, (events) => events.at(-1)?.id === last)).map((event) => event.id);
  const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => from + index);
  assert.deepEqual(await ids(await open(`${address}/v1/events?after=0`), 1200), range(1, 1200));
  const resumed = ids(await open(`${address}/v1/events?after=0`, { 'last-event-id': '1190' }), 1300);
  await append(floor.store, 100);
  assert.deepEqual(await resumed, range(1191, 1300));
  const bad = await open(`${address}/v1/events`, { 'last-event-id': 'x' });
  assert.equal(bad.statusCode, 400);
  bad.resume();
});

test('a reader that resumes after events that are no longer kept gets 410 with the oldest id', async () => {
  await using floor = await openFloor();
  const address = await floor.listen();
  await append(floor.store, 5);
  while ((await floor.store.oldestEventId()) < 6) await floor.store.retain({ endedMs: 1, eventsMs: 1 });
  await append(floor.store, 2);
  const gone = await open(`${address}/v1/events`, { 'last-event-id': '3' });
  const body = JSON.parse(await text(gone));
  assert.deepEqual([gone.statusCode, body.error.code, body.error.details], [410, 'gone', { oldest: 6 }]);
  assert.match(body.error.message, /read on with after=5/);
  const [event] = await readEvents(await open(`${address}/v1/events?after=5`), (events) => events.length > 1);
  assert.equal(event?.id, 6);
});

test('a stream ends when retention overtakes its reader, instead of skipping events', async () => {
  await using floor = await openFloor();
  await append(floor.store, 5);
  const feed = new EventFeed(floor.store, systemClock);
  const stream = feed.stream(2, new AbortController().signal);
  await stream.next();
  while ((await floor.store.oldestEventId()) < 6) await floor.store.retain({ endedMs: 1, eventsMs: 1 });
  assert.equal((await stream.next()).done, true);
});

test('a stalled reader misses nothing, and unread events are not held in memory for it', async () => {
  let reads = 0;
  await using floor = await openFloor({
    wrap: (store) =>
      new Proxy(store, {
        get(target, name) {
          if (name === 'events') reads += 1;
          return Reflect.get(target, name);
        },
      }),
  });
  const address = await floor.listen();
  const stalled = await open(`${address}/v1/events?after=0`);
  stalled.pause();
  await append(floor.store, 9000, 'x'.repeat(1000));
  const keepsUp = await open(`${address}/v1/events?after=8999`);
  await readEvents(keepsUp, (events) => events.at(-1)?.id === 9000);
  const readsWhileStalled = reads;
  const events = await readEvents(stalled, (seen) => seen.at(-1)?.id === 9000);
  assert.equal(events.length, 9000);
  assert.ok(events.every((event, index) => event.id === index + 1));
  assert.ok(reads > readsWhileStalled, 'the rest was read from the store when the reader resumed');
});

test('a glance gets what is new in one piece at a time, and of very many events only the newest', async () => {
  const store = { lastEventId: async () => 0 } as unknown as Store;
  const waits: (() => void)[] = [];
  const after = (_ms: number, callback: () => void) => {
    waits.push(callback);
    return () => {};
  };
  const feed = new EventFeed(store, { ...systemClock, after });
  const stop = new AbortController();
  const stream = feed.glance(500, stop.signal);
  await stream.next();
  const next = stream.next();
  const make = (id: number) => ({ id, at: '2026-01-01T00:00:00.000Z', kind: 'policy-pause', data: {} }) as never;
  feed.push([make(1), make(2)]);
  assert.match((await next).value ?? '', /^id: 1\n[\s\S]*\nid: 2\n/);
  feed.push(Array.from({ length: 2000 }, (_, index) => make(index + 3)));
  const later = stream.next();
  waits.at(-1)?.();
  assert.match((await later).value ?? '', /^id: 1503\n[\s\S]*\nid: 2002\n/);
  stop.abort();
});

test('an idle stream sends heartbeats', async () => {
  const { promise: waiting, resolve } = Promise.withResolvers<() => void>();
  const after = (ms: number, callback: () => void) => {
    if (ms === 15_000) resolve(callback);
    return systemClock.after(ms, callback);
  };
  await using floor = await openFloor({ clock: { ...systemClock, after } });
  const stream = await open(`${await floor.listen()}/v1/events`);
  let text = '';
  stream.on('data', (chunk: Buffer) => {
    text += chunk.toString();
  });
  (await waiting)();
  while (!text.includes(': alive\n\n')) await once(stream, 'data');
  stream.destroy();
});
