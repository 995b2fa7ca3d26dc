// Metrics of this server's store: how long its calls take, how many run together, and how late the event log is.

import type { Event } from '@millrace/protocol';
import type { StoreObserver } from '@millrace/store';
import { Gauge, Histogram, type Registry } from 'prom-client';

export interface StoreMetrics extends StoreObserver {
  push(events: readonly Event[], nowMs: number): void;
  /** Workers that wait for events here. */
  waiting(count: number): void;
}

export function openStoreMetrics(registry: Registry): StoreMetrics {
  const registers = [registry];
  const calls = new Histogram({
    name: 'millrace_store_call_seconds',
    help: 'Duration of calls of the store, by call, with the time that they waited for others.',
    labelNames: ['call'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5],
    registers,
  });
  const together = new Histogram({
    name: 'millrace_store_calls_together',
    help: 'Calls that a PostgreSQL store ran in one transaction; those of one kind share its statements.',
    buckets: [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000],
    registers,
  });
  const lag = new Histogram({
    name: 'millrace_event_lag_seconds',
    help: 'From an event to when this server read it in the log, by the dates of both; with PostgreSQL that includes its numbering.',
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30],
    registers,
  });
  const waiting = new Gauge({ name: 'millrace_waiting_workers', help: 'Worker processes that wait for events at this server.', registers });
  return {
    onCall: (call, ms) => calls.observe({ call }, ms / 1000),
    onTick: (count) => together.observe(count),
    push(events, nowMs) {
      const newest = events.at(-1);
      if (newest) lag.observe(Math.max(0, nowMs - Date.parse(newest.at)) / 1000);
    },
    waiting: (count) => waiting.set(count),
  };
}
