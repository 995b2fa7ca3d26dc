// How many nodes a deployment should have, by the work that there is. Pure: time comes in with each look. More nodes are asked for soon,
// fewer only after a long calm, so that a short gap between two batches does not release nodes that the next one needs.

interface AutoscaleRules {
  readonly least: number;
  readonly most: number;
  /** Rollouts that one node runs at the same time. */
  readonly perNode: number;
  /** How long more nodes must have been needed. */
  readonly upAfterMs: number;
  /** How long fewer nodes must have been enough. */
  readonly downAfterMs: number;
}

export interface Look {
  readonly nowMs: number;
  /** Nodes that run workers or wait for Slurm, without those that were released. */
  readonly nodes: number;
  /** Rollouts that wait, and rollouts that workers hold. */
  readonly queued: number;
  readonly held: number;
}

/** Remembers how long a change has been wanted. */
export class AutoscalePolicy {
  readonly #rules: AutoscaleRules;
  #since: { readonly direction: 'up' | 'down'; readonly atMs: number; readonly peak: number } | undefined;

  constructor(rules: AutoscaleRules) {
    this.#rules = rules;
  }

  /** The number of nodes from now on; that of the look if nothing should change. */
  choose(look: Look): number {
    const { least, most, perNode, upAfterMs, downAfterMs } = this.#rules;
    const needed = Math.min(most, Math.max(least, Math.ceil((look.queued + look.held) / perNode)));
    if (needed === look.nodes) {
      this.#since = undefined;
      return look.nodes;
    }
    const direction = needed > look.nodes ? 'up' : 'down';
    if (this.#since?.direction !== direction) this.#since = { direction, atMs: look.nowMs, peak: needed };
    // On the way down, the busiest moment of the calm decides: it will come again.
    const peak = Math.max(this.#since.peak, needed);
    this.#since = { ...this.#since, peak };
    if (look.nowMs - this.#since.atMs < (direction === 'up' ? upAfterMs : downAfterMs)) return look.nodes;
    this.#since = undefined;
    return direction === 'up' ? needed : peak;
  }
}
