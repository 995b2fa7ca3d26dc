// Where rollouts are placed and which backends are broken, as all workers share it. The store keeps it; a pool without one
// knows only its own rollouts.

import type { BackendId, RolloutId, WorkerId } from '@millrace/protocol';
import type { Routing } from './routing.ts';

/** Who is placed: a rollout under the claim that lets its worker write. */
export interface Placed {
  readonly id: RolloutId;
  readonly worker: WorkerId;
  readonly attempt: number;
}

export interface PlaceOptions {
  /** Backends that it must not go to. */
  readonly exclude?: readonly BackendId[];
  /** It stays where it is unless that backend is far busier than another; otherwise it is placed as if for the first time. */
  readonly isSticky?: boolean;
  /** How long its context is. */
  readonly tokens?: number;
  readonly routing?: Routing;
}

export interface BackendLoad {
  readonly id: BackendId;
  /** Rollouts that run on it, over all workers. */
  readonly inFlight: number;
  /** The context of those rollouts together, as last heard. */
  readonly tokens: number;
}

export interface Placements {
  /**
   * Chooses a backend for a rollout in run and keeps the choice with it, in one transaction. It counts there until the rollout
   * leaves run, however it does. Undefined when no backend may take it, or when the claim is no longer this worker's.
   */
  place(rollout: Placed, options: PlaceOptions): Promise<BackendId | undefined>;
  /**
   * Nothing is placed on it any more. A broken one stays as it is, unless a probe found it so: then the next one comes later,
   * twice as late each time.
   */
  breakBackend(id: BackendId, options: { readonly error: string; readonly isProbe?: boolean }): Promise<void>;
  /** It answers again. */
  recoverBackend(id: BackendId): Promise<void>;
  /** 0 when a broken backend is now this caller's to probe, milliseconds until it may be, undefined when it is not broken. */
  takeProbe(id: BackendId): Promise<number | undefined>;
}

/** A broken backend is probed after so long, then after twice that, up to the longest. */
export const firstProbeMs = 1000;
export const longestProbeMs = 30_000;
/** How long a probe may take; whoever took one and was not heard of since has lost it. */
export const probeTimeoutMs = 20_000;
