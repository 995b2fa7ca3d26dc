// Where rollouts are placed and which backends are broken, shared by all workers. The store implements it; a pool without it
// knows only its own rollouts.

import type { BackendProbe } from '@millrace/engines';
import type { BackendId, RolloutId, WorkerId } from '@millrace/protocol';
import type { Routing } from './routing.ts';

/** A rollout under the claim that lets its worker write. */
export interface PlacedRollout {
  readonly id: RolloutId;
  readonly worker: WorkerId;
  readonly attempt: number;
}

export interface PlaceOptions {
  /** Backends that it must not be placed on. */
  readonly exclude?: readonly BackendId[];
  /** It stays where it is unless that backend is far busier than another. Otherwise it is placed as if for the first time. */
  readonly isSticky?: boolean;
  /** The length of its context. */
  readonly tokens?: number;
  readonly routing?: Routing;
  /** The moves of the rollout before may be lost, because the database crashed. */
  readonly isRepeated?: boolean;
}

export interface BackendLoad {
  readonly id: BackendId;
  /** Rollouts that run on it, over all workers. */
  readonly inFlight: number;
  /** The context of those rollouts together, as last reported. */
  readonly tokens: number;
}

/** How many tokens the KV caches of a backend keep. */
export interface CacheSize {
  readonly id: BackendId;
  readonly tokens: number;
}

/** The rollouts of one worker on a backend that are among the oldest of all workers there which fit into its KV caches together. */
export interface OldestOn {
  readonly id: BackendId;
  readonly rollouts: readonly RolloutId[];
}

export interface Placements {
  /**
   * Chooses a backend for a rollout in run and records the choice, in one transaction. The rollout counts there until it leaves
   * run for any reason. Undefined if no backend can take it, or if the claim is no longer this worker's.
   */
  place(rollout: PlacedRollout, options: PlaceOptions): Promise<BackendId | undefined>;
  /**
   * Nothing more of this machine is placed on it; and nothing of any machine once more than half of the machines with rollouts on it
   * say so, or if no machine is named. A backend that is already broken stays as it is, unless a probe failed: then the wait before the
   * next probe doubles.
   */
  breakBackend(id: BackendId, report: HealthReport): Promise<void>;
  /** It works again: for this machine, or for all if it was broken for all. */
  recoverBackend(id: BackendId, options?: Pick<HealthReport, 'machine'>): Promise<void>;
  /**
   * Adds to what is known about its server. A whole probe, which has a time, may show that it has become another one: then nothing that was
   * known is kept, and an event says so. Returns what is known now; undefined if the backend has left.
   */
  noteProbe(id: BackendId, probe: BackendProbe): Promise<BackendProbe | undefined>;
  /** 0 if the caller is to probe a broken backend now, else the milliseconds to wait; undefined if it is not broken for its machine. */
  takeProbe(id: BackendId, options?: Pick<HealthReport, 'machine'>): Promise<number | undefined>;
}

export interface HealthReport {
  readonly error: string;
  readonly isProbe?: boolean;
  /** The host of the worker that reports it. */
  readonly machine?: string | undefined;
}

/** The wait before the first probe of a broken backend. It doubles after each failed probe, up to the longest. */
export const firstProbeMs = 1000;
export const longestProbeMs = 30_000;
/** How long a probe may take. After that another worker may probe. */
export const probeTimeoutMs = 20_000;
