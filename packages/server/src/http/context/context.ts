// What the handlers share: the app's options, and what it built from them.

import type { Clock } from '@millrace/base/clock';
import type { Log } from '@millrace/base/log';
import type { BackendProbe, NewBackend } from '@millrace/engines';
import type { SandboxMeans, WorkerSettings } from '@millrace/protocol';
import type { Scenarios } from '@millrace/scenarios';
import type { Store } from '@millrace/store';
import type { FastifyReply } from 'fastify';
import type { TaskFiles } from '../../batches/task-files.ts';
import type { WorkerFeed } from '../machines/worker-feed.ts';
import type { Metrics } from '../metrics/metrics.ts';
import type { HttpConfig } from '../request/http-config.ts';

import type { EndWaiters } from './end-waiters.ts';
import type { EventFeed } from './event-feed.ts';
import type { RecentEnds } from './recent-ends.ts';
import type { StatusReader } from './status.ts';

export interface AppContext {
  readonly store: Store;
  readonly scenarios: Scenarios;
  readonly taskFiles: TaskFiles;
  readonly config: HttpConfig;
  readonly log: Log;
  readonly clock: Clock;
  /** Reads what a server says about itself; throws if it does not work. */
  readonly probe: (backend: NewBackend) => Promise<BackendProbe>;
  /** What the sandboxes of this configuration can have. */
  readonly sandboxes: {
    readonly means: SandboxMeans;
    /** The names of harnesses. */
    readonly harnesses: readonly string[];
    /** Says so if this machine, which runs all workers, does not have the image. */
    findMissingImage(name: string | undefined): Promise<string | undefined>;
  };
  /** The folder or the address of the model's tokenizer. */
  readonly tokenizer?: string | undefined;
  /** What a worker on another machine needs. */
  readonly workerSettings: (wire: number | undefined) => WorkerSettings;
  /** The id of this server among those that share its store. */
  readonly server: string;
  /** Whether it is the one server that reports the metrics of the whole service. */
  readonly leadership: { readonly isLeader: boolean };
  readonly status: StatusReader;
  readonly feed: EventFeed;
  readonly workerFeed: WorkerFeed;
  readonly waiters: EndWaiters;
  readonly recentEnds: RecentEnds;
  readonly metrics: Metrics;
  /** Aborted once the service accepts no more work. */
  readonly draining: AbortSignal;
}

/** How long an id that was cancelled before its submission arrived is remembered. */
export const tombstoneMs = 600_000;

/** Aborted when the client disconnects or the response is complete. */
export function closedSignal(reply: FastifyReply): AbortSignal {
  const controller = new AbortController();
  reply.raw.once('close', () => controller.abort(replyClosed));
  return controller.signal;
}

/** Made once: an exception for each request costs more than most of its handling. */
const replyClosed = new DOMException('the client has its reply, or has left', 'AbortError');
