// The contract suite of the store: every promise of the contract as a test, for any implementation.

import { describe } from 'node:test';
import { defineServerIdentityTests } from './backends/server-identity.ts';
import { defineBatchRequestTests } from './batch-requests.ts';
import { defineBatchTests } from './batches.ts';
import type { OpenBed } from './bed/bed.ts';
import { defineCallerTests } from './callers.ts';
import { defineClaimTests } from './claims.ts';
import { defineEvaluationTests } from './evaluations.ts';
import { defineFairnessTests } from './fairness.ts';
import { defineLogTests } from './log.ts';
import { defineVerdictTests } from './losses/verdicts.ts';
import { defineMachineTests } from './machines.ts';
import { definePlacementTests } from './placements.ts';
import { definePoisonTests } from './poison.ts';
import { definePolicyTests } from './policy.ts';
import { defineRetentionTests } from './retention.ts';
import { defineServerTests } from './servers.ts';
import { defineTrainerTests } from './trainer.ts';
import { defineTurnLogTests } from './turn-log.ts';
import { defineWorkerTests } from './workers.ts';

export function defineStoreSuite(name: string, openBed: OpenBed): void {
  describe(name, { concurrency: 4 }, () => {
    defineCallsOfWorkers(openBed);
    defineCallerTests(openBed);
    defineFairnessTests(openBed);
    definePolicyTests(openBed);
    defineBatchTests(openBed);
    defineBatchRequestTests(openBed);
    defineEvaluationTests(openBed);
    defineRetentionTests(openBed);
    defineServerTests(openBed);
    defineTrainerTests(openBed);
  });
}

/** The part about what workers call, for a store that they reach in another way. */
export function defineWorkerStoreSuite(name: string, openBed: OpenBed): void {
  describe(name, { concurrency: 4 }, () => defineCallsOfWorkers(openBed));
}

function defineCallsOfWorkers(openBed: OpenBed): void {
  defineClaimTests(openBed);
  defineWorkerTests(openBed);
  definePoisonTests(openBed);
  defineVerdictTests(openBed);
  definePlacementTests(openBed);
  defineServerIdentityTests(openBed);
  defineLogTests(openBed);
  defineMachineTests(openBed);
  defineTurnLogTests(openBed);
}
