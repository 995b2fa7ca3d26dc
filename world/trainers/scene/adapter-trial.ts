// The test of one adapter: a service with the trial scenario, one run of a program in the trainer's own Python, and claims about what that
// program printed. It is called once in a test file.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, type TestContext } from 'node:test';
import type { Client } from '@millrace/client';
import type { z } from 'zod';
import type { Capability } from '../bed/proof-table.ts';
import { openProofs, type ProofHead } from '../bed/proofs.ts';
import type { TrainerSettings } from '../bed/settings.ts';
import { openTrainerPython, type TrainerPackages } from '../bed/trainer-python.ts';
import type { TrainerRun } from '../bed/trainer-service.ts';
import { runAdapter } from './run-adapter.ts';
import { openTrialService, type TrialService } from './trial-service.ts';

interface AdapterRun<R> {
  /** The folder of the test, in which the program and the requirements are. */
  readonly folder: string;
  readonly script: string;
  /** Of the trainer's Python: a requirements file of the folder, or the path of an interpreter. */
  readonly python: Pick<TrainerPackages, 'requirements' | 'torch' | 'base'> | (() => Promise<string>);
  readonly report: z.ZodType<R>;
  readonly input: (trial: TrialService) => unknown;
  readonly env?: (trial: TrialService) => TrainerRun['env'] | Promise<TrainerRun['env']>;
  /** Whether the fake LLM server joins the service; the adapter does it otherwise. */
  readonly joins?: boolean;
}

interface Played<R> {
  /** What the program printed. */
  readonly found: R;
  readonly trial: TrialService;
  readonly client: Client;
}

interface AdapterProver<R> {
  settle(settings: TrainerSettings): void;
  prove(
    capability: Capability | readonly Capability[],
    claim: string,
    check: (played: Played<R>, context: TestContext) => Promise<void> | void,
  ): void;
}

export function openAdapterTrial<R>(name: string, head: ProofHead, run: AdapterRun<R>): AdapterProver<R> {
  let trial: TrialService | undefined;
  let found: R | undefined;
  // Before openProofs, whose own hook fails if the proofs differ: the hooks after it would then not run.
  after(() => trial?.[Symbol.asyncDispose]());
  const { prove, settle } = openProofs(name, head);
  before(async () => {
    const { folder, python: packages } = run;
    trial = await openTrialService({ joins: run.joins ?? true });
    const python =
      typeof packages === 'function'
        ? await packages()
        : await openTrainerPython({ ...packages, requirements: join(folder, packages.requirements) });
    const script = join(folder, run.script);
    const env = (await run.env?.(trial)) ?? {};
    found = run.report.parse(await runAdapter(trial.service.url, { python, script, env, input: await run.input(trial) }));
  });
  return {
    settle,
    prove: (capability, claim, check) =>
      prove(capability, claim, async (context) => {
        assert.ok(trial && found !== undefined);
        await check({ found, trial, client: trial.service.client }, context);
      }),
  };
}
