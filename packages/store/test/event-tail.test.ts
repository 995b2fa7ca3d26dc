// Claims about the one reader of the event log in a process.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLog } from '@millrace/base/log';
import type { Event, EventKind } from '@millrace/protocol';
import { FakeClock } from '@millrace/testkit/plain';
import { EventTail } from '../src/event-tail.ts';
import type { Store } from '../src/store.ts';

test('a tail delivers new events on a hint, in order and once, in as many reads as needed', async () => {
  const log = makeLog();
  log.append(3);
  await using tail = new EventTail({ store: log.store, after: 1, limit: 2, clock: new FakeClock(), log: silentLog });
  const received = listen(tail);
  await received.until(3);
  log.append(5);
  log.hint();
  log.hint();
  await received.until(8);
  assert.deepEqual(received.ids, [2, 3, 4, 5, 6, 7, 8]);
});

test('a tail finds events without a hint within a second', async () => {
  const clock = new FakeClock();
  const log = makeLog();
  await using tail = new EventTail({ store: log.store, after: 0, clock, log: silentLog });
  const received = listen(tail);
  await log.read;
  log.append(1);
  clock.advance(1_000);
  await received.until(1);
});

test('a hint during a read is not lost', async () => {
  const log = makeLog();
  await using tail = new EventTail({ store: log.store, after: 0, clock: new FakeClock(), log: silentLog });
  const received = listen(tail);
  log.append(1);
  log.hint();
  await received.until(1);
});

test('with a gap, hints are read together after it, and none is lost', async () => {
  const clock = new FakeClock();
  const log = makeLog();
  await using tail = new EventTail({ store: log.store, after: 0, gapMs: 20, clock, log: silentLog });
  const received = listen(tail);
  await log.read;
  for (let round = 0; round < 3; round++) {
    await new Promise(setImmediate);
    log.append(1);
    log.hint();
    await new Promise(setImmediate);
    assert.equal(received.ids.length, round, 'nothing is read within the gap');
    clock.advance(20);
    await received.until(round + 1);
  }
});

test('a listener that throws is logged and affects neither the others nor the tail', async () => {
  const log = makeLog();
  const errors: string[] = [];
  await using tail = new EventTail({
    store: log.store,
    after: 0,
    clock: new FakeClock(),
    log: { ...silentLog, error: (event) => errors.push(event) },
  });
  tail.subscribe(() => {
    throw new Error('mine');
  });
  const received = listen(tail);
  for (const id of [1, 2]) {
    log.append(1);
    log.hint();
    await received.until(id);
  }
  assert.deepEqual(errors, ['event-listener-failed', 'event-listener-failed']);
});

test('a failed read is logged, and the next one continues from the same position', async () => {
  const log = makeLog();
  const errors: string[] = [];
  log.failOnce = true;
  await using tail = new EventTail({
    store: log.store,
    after: 0,
    clock: new FakeClock(),
    log: { ...silentLog, error: (event) => errors.push(event) },
  });
  const received = listen(tail);
  await log.read;
  log.append(1);
  log.hint();
  await received.until(1);
  assert.deepEqual(errors, ['event-tail-read-failed']);
});

test('an unsubscribed listener gets no events, and neither does one of a closed tail', async () => {
  const log = makeLog();
  const tail = new EventTail({ store: log.store, after: 0, clock: new FakeClock(), log: silentLog, kinds: ['turn-end'] });
  const [left, stayed] = [listen(tail), listen(tail)];
  left.stop();
  log.append(1);
  log.hint();
  await stayed.until(1);
  await tail[Symbol.asyncDispose]();
  await tail[Symbol.asyncDispose]();
  log.append(1);
  log.hint();
  assert.deepEqual([left.ids, stayed.ids, log.hintListeners], [[], [1], 0]);
});

function listen(tail: EventTail) {
  const ids: number[] = [];
  let check = () => {};
  const stop = tail.subscribe((events) => {
    ids.push(...events.map(({ id }) => id));
    check();
  });
  return {
    ids,
    stop,
    until: (id: number) =>
      new Promise<void>((resolve) => {
        check = () => ids.at(-1) === id && resolve();
        check();
      }),
  };
}

/** The log part of a store, in memory. `read` resolves after the first read. */
function makeLog() {
  const events: Event[] = [];
  const listeners = new Set<() => void>();
  const read = Promise.withResolvers<void>();
  const log = {
    failOnce: false,
    read: read.promise,
    append(count: number) {
      for (let n = 0; n < count; n++) events.push({ id: events.length + 1, at: '2020-01-01T00:00:00Z', kind: 'turn-end', data: {} });
    },
    hint() {
      for (const listener of listeners) listener();
    },
    get hintListeners() {
      return listeners.size;
    },
    store: {
      async events(after: number, options: { limit: number; kinds?: readonly EventKind[] }) {
        await Promise.resolve();
        queueMicrotask(read.resolve);
        if (log.failOnce) {
          log.failOnce = false;
          throw new Error('disk on fire');
        }
        const page = events.filter(({ id }) => id > after).slice(0, options.limit);
        return { events: page, last: page.at(-1)?.id ?? after };
      },
      onHint(listener: () => void) {
        listeners.add(listener);
        return () => void listeners.delete(listener);
      },
    } as unknown as Store,
  };
  return log;
}
