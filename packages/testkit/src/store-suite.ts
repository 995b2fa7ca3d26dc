// The contract suite of the store: every sentence of the contract as a test, for whichever engine opens the bed.

import { describe } from 'node:test';
import type { OpenBed } from './store-bed.ts';
import { defineBatchTests } from './store-suite-batches.ts';
import { defineCallerTests } from './store-suite-callers.ts';
import { defineClaimTests } from './store-suite-claims.ts';
import { defineLogTests } from './store-suite-log.ts';
import { definePlacementTests } from './store-suite-placements.ts';
import { definePolicyTests } from './store-suite-policy.ts';
import { defineWorkerTests } from './store-suite-workers.ts';

export function defineStoreSuite(name: string, openBed: OpenBed): void {
  describe(name, { concurrency: 4 }, () => {
    defineCallerTests(openBed);
    defineClaimTests(openBed);
    defineWorkerTests(openBed);
    definePlacementTests(openBed);
    defineLogTests(openBed);
    definePolicyTests(openBed);
    defineBatchTests(openBed);
  });
}
