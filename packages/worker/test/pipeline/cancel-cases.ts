// Rollouts to cancel: one for each thing that a rollout may wait for, in the state in which it does.

import type { RolloutState, SubmissionInput } from '@millrace/protocol';
import type { Scenario } from '@millrace/scenarios';
import { z } from 'zod';
import { bash, says, shell, WorkerBed } from './worker-bed.ts';

/** A scenario without a sandbox whose init or evaluate ends when the test opens the gate, and ignores its signal. */
export function makeGated(closed: 'init' | 'evaluate') {
  const gate = Promise.withResolvers<void>();
  const scenario: Scenario = {
    name: 'gated',
    task: z.unknown(),
    async init() {
      if (closed === 'init') await gate.promise;
      return { messages: [{ role: 'user', content: 'go' }], tools: ['finish'] };
    },
    async evaluate() {
      if (closed === 'evaluate') await gate.promise;
      return { reward: 1 };
    },
  };
  return { scenario, open: () => gate.resolve() };
}

export const gated = (id: string) => ({ id, scenario: 'gated', task: {} });
type CancelCase = readonly [where: string, state: RolloutState, open: () => Promise<{ bed: WorkerBed; input: SubmissionInput }>];

export const cancelCases: readonly CancelCase[] = [
  [
    'init, in a scenario that ignores its signal',
    'init',
    async () => ({ bed: await WorkerBed.open({ scenarios: [makeGated('init').scenario] }), input: gated('c') }),
  ],
  ['init, while a script runs', 'init', async () => ({ bed: await WorkerBed.open(), input: shell('c', { setup: 'sleep 60' }) })],
  ['run, while it waits for a backend', 'run', async () => ({ bed: await WorkerBed.open({ withoutBackend: true }), input: shell('c') })],
  ['run, while the model samples', 'run', async () => ({ bed: await WorkerBed.open({ latencyMs: 60_000 }), input: shell('c') })],
  [
    'run, while a command runs',
    'run',
    async () => ({ bed: await WorkerBed.open({ policy: says(bash('trap "" INT TERM; sleep 60')) }), input: shell('c') }),
  ],
  [
    'evaluate, in a scenario that ignores its signal',
    'evaluate',
    async () => ({ bed: await WorkerBed.open({ scenarios: [makeGated('evaluate').scenario] }), input: gated('c') }),
  ],
  ['evaluate, while a check runs', 'evaluate', async () => ({ bed: await WorkerBed.open(), input: shell('c', { check: 'sleep 60' }) })],
];
