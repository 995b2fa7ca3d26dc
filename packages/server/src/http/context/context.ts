// What the handlers share: the things that the app was given, and those that it made of them.

import type { FastifyReply } from 'fastify';
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { TaskFiles } from '../../sampling/task-files.ts';
import type { Scenarios } from '../../scenario/load.ts';
import type { Store } from '../../store/store.ts';
import type { Metrics } from '../metrics/metrics.ts';
import type { HttpConfig } from '../request/http-config.ts';
import type { EndRate } from './end-rate.ts';
import type { EndWaiters } from './end-waiters.ts';
import type { EventFeed } from './event-feed.ts';
import type { StatusReader } from './status.ts';

export interface Context {
  readonly store: Store;
  readonly scenarios: Scenarios;
  readonly taskFiles: TaskFiles;
  readonly config: HttpConfig;
  readonly log: Log;
  readonly clock: Clock;
  readonly status: StatusReader;
  readonly feed: EventFeed;
  readonly waiters: EndWaiters;
  readonly endRate: EndRate;
  readonly metrics: Metrics;
  /** Aborted when the service takes nothing in any more. */
  readonly draining: AbortSignal;
}

/** How long an id that was cancelled before it arrived is remembered. */
export const tombstoneMs = 600_000;

/** Aborted when the caller has hung up, or has its answer. */
export function closedSignal(reply: FastifyReply): AbortSignal {
  const controller = new AbortController();
  reply.raw.once('close', () => controller.abort());
  return controller.signal;
}
