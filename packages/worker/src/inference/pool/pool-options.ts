// What a pool of backends is opened with.

import type { Clock } from '@millrace/base/clock';
import type { Log } from '@millrace/base/log';
import type { Pace } from '@millrace/base/pace';
import type { Backend, BackendRecord } from '@millrace/engines';
import type { Placements, Routing } from '@millrace/store';
import type { TokenizerSample } from './tokenizer-check.ts';

/** Where a setting is absent; the service's settings take them from here. */
export const poolDefaults = { spillTurns: 8, breakAfter: 5 } as const;

export interface PoolOptions {
  readonly log: Log;
  readonly pace: Pace;
  readonly clock?: Clock;
  /** A call fails if its backend sends nothing for this long. */
  readonly stallMs?: number;
  /** How much longer the first byte of a reply may take for each token that the call asks for, while the server is healthy. */
  readonly tokenMs?: number;
  /** Opens a record's backend. By default the adapter of its dialect, over the pool's own connections. */
  readonly open?: (record: BackendRecord) => Backend;
  /** Where placements and health are shared. Without it the pool balances only its own rollouts, and breaks no backend. */
  readonly placements?: Placements;
  readonly routing?: Routing;
  /** How many turns a rollout stays before it may leave a busy backend. */
  readonly spillTurns?: number;
  /** How many failed calls in a row break a backend. */
  readonly breakAfter?: number;
  /** Whether later turns have a higher priority. */
  readonly prioritizeLong?: boolean;
  /** Whether turns wait for room in the KV cache of their backend. */
  readonly holdForCache?: boolean;
  /** The host name of this machine: what it cannot reach is broken for it alone, unless other machines agree. */
  readonly machine?: string;
  /** Compared with the tokenizer of a server that recovers. */
  readonly tokenizer?: TokenizerSample;
}
