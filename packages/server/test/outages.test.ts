// An outage in the log: its start, a line now and then, and its end, for every part of the service that tries again.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Fields, type Log, withOutages } from '@millrace/base/log';
import { FakeClock } from '@millrace/testkit';
import { outageOf } from '../src/log-events.ts';

interface Bed {
  readonly clock: FakeClock;
  readonly log: Log;
  /** The events so far, each with how many failures it stands for. */
  readonly seen: string[];
}

function openBed(): Bed {
  const seen: string[] = [];
  const say = (event: string, { failures, outage }: Fields = {}) =>
    void seen.push([event, outage, failures].filter((part) => part !== undefined).join(' '));
  const clock = new FakeClock();
  return { clock, seen, log: withOutages({ info: say, warn: say, error: say }, { clock, outageOf }) };
}

const storeEvents = ['worker-loop-failed', 'policy-read-failed', 'event-tail-read-failed', 'rollout-save-failed', 'store-connection-lost'];

test('five outages of the store, met by every part each second, are a few lines each', () => {
  const { clock, log, seen } = openBed();
  for (let outage = 0; outage < 5; outage += 1) {
    for (let second = 0; second < 25; second += 1) {
      for (const event of storeEvents) log.error(event, { error: 'connection refused' });
      clock.advance(1000);
    }
    clock.advance(60_000);
  }
  assert.deepEqual(seen.slice(0, 3), ['worker-loop-failed', 'worker-loop-failed 50', 'outage-end store 125']);
  assert.equal(seen.length, 15);
});

test('the distance between the lines of a long outage grows to ten minutes', () => {
  const { clock, log, seen } = openBed();
  for (let second = 0; second < 3600; second += 1) {
    log.warn('store-connection-lost', {});
    clock.advance(1000);
  }
  assert.ok(seen.length >= 10 && seen.length <= 14, seen.join('\n'));
  clock.advance(60_000);
  assert.equal(seen.at(-1), 'outage-end store 3600');
});

test('a failure that is not repeated is one line, and one that comes back later is a new outage', () => {
  const { clock, log, seen } = openBed();
  for (const gapMs of [40_000, 40_000]) {
    log.error('housekeeping-failed', {});
    clock.advance(gapMs);
  }
  assert.deepEqual(seen, ['housekeeping-failed', 'housekeeping-failed']);
});

test('a webhook that fails at growing distances is one outage, and another one has its own', () => {
  const { clock, log, seen } = openBed();
  for (const gapMs of [500, 1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]) {
    log.warn('webhook-failed', { batch: 'a' });
    clock.advance(gapMs);
  }
  log.warn('webhook-failed', { batch: 'b' });
  clock.advance(600_000);
  assert.equal(seen.filter((line) => line === 'webhook-failed').length, 2, seen.join('\n'));
  assert.deepEqual(
    seen.filter((line) => line.startsWith('outage-end')),
    ['outage-end webhook-failed a 9'],
  );
});

test('what is not tried again has a line each time', () => {
  const { log, seen } = openBed();
  for (const event of ['rollout-failure', 'request-failed', 'clock-jump']) for (let count = 0; count < 3; count += 1) log.warn(event, {});
  assert.equal(seen.length, 9);
});
