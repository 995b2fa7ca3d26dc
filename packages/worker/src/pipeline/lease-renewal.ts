// The renewals of a worker's lease. From time to time one names what the worker holds, which the store compares with all that it has of it; and
// so does the next one after a claim whose reply may have been lost.

import type { Clock } from '@millrace/base/clock';
import type { WorkerId, WorkerReport } from '@millrace/protocol';
import type { Claim, WorkerStore } from '@millrace/store';
import type { PipelineConfig } from './attempt/pipeline-config.ts';

const namesMs = 5000;

interface RenewalDeps {
  readonly store: Pick<WorkerStore, 'renew'>;
  readonly config: Pick<PipelineConfig, 'leaseMs' | 'maxLosses' | 'retryDelayMs'>;
  readonly clock: Clock;
}

export class LeaseRenewal {
  readonly #deps: RenewalDeps;
  #namedAt = Number.NEGATIVE_INFINITY;

  constructor(deps: RenewalDeps) {
    this.#deps = deps;
  }

  /** The next renewal names what the worker holds. */
  nameNext(): void {
    this.#namedAt = Number.NEGATIVE_INFINITY;
  }

  /** No claim may be under way. */
  async renew(
    worker: WorkerId,
    report: WorkerReport,
    held: () => readonly Pick<Claim, 'id' | 'attempt'>[],
  ): ReturnType<WorkerStore['renew']> {
    const { store, clock, config } = this.#deps;
    const { leaseMs, maxLosses, retryDelayMs } = config;
    const startedAt = clock.monotonic();
    if (startedAt - this.#namedAt < namesMs) return await store.renew(worker, { leaseMs, report });
    const renewed = await store.renew(worker, { leaseMs, report, held: { claims: held(), maxLosses, retryDelayMs } });
    this.#namedAt = startedAt;
    return renewed;
  }
}
