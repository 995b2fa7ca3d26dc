// One complete training run on this machine: the base model, its server, the service with real sandboxes, and the trainer. The command
// and the test both run this.

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { makeTempFolder, processesInSandboxesOf, type TempFolder, TestService } from '@millrace/testkit';
import { makeBaseModel } from './model/pretrain.ts';
import { makeTokenizerFiles } from './model/vocabulary.ts';
import { PolicyServer } from './serving/policy-server.ts';
import type { OnPolicyCount } from './training/on-policy.ts';
import { type Step, train } from './training/trainer.ts';

export interface LearnOptions {
  readonly seed: number;
  readonly goal: number;
  readonly mostSteps: number;
  /** Ends the run early: everything opened is closed, and `learn` rejects. */
  readonly signal?: AbortSignal;
  onStep?(step: Step): void;
  onMoment?(what: string): void;
}

export interface LearnReport {
  readonly steps: readonly Step[];
  readonly onPolicy: Readonly<OnPolicyCount>;
  /** Processes that were left in sandboxes. */
  readonly left: number;
}

export async function learn({
  seed,
  goal,
  mostSteps,
  signal = new AbortController().signal,
  onStep,
  onMoment,
}: LearnOptions): Promise<LearnReport> {
  onMoment?.('Pretraining the base model: a small transformer that knows the format but not the task …');
  const base = makeBaseModel(seed);
  await using folder = await makeModelFolder();
  await using server = await PolicyServer.open(seed, base);
  signal.throwIfAborted();
  onMoment?.('Starting `millrace serve` with two worker processes …');
  await using service = await TestService.open({
    workers: 2,
    tokenizer: folder.path,
    toolParser: 'fenced',
    // The base model knows the format, and has no words for a description.
    teachTools: false,
    scenarios: [fileURLToPath(new URL('./task/scenario.ts', import.meta.url))],
    pipeline: { initSlots: 4, readySlots: 8, runSlots: 16 },
  });
  const onPolicy = { tokens: 0, largest: 0 };
  const steps: Step[] = [];
  onMoment?.('Training with DAPO, every rollout in its own sandbox …\n');
  for await (const step of train({ client: service.client, server, base, seed, goal, mostSteps, signal }, onPolicy)) {
    steps.push(step);
    onStep?.(step);
  }
  await service.stop();
  return { steps, onPolicy, left: (await processesInSandboxesOf(service.runDir)).length };
}

/** A temporary model folder in the form the service expects. */
async function makeModelFolder(): Promise<TempFolder> {
  const folder = await makeTempFolder('mr-model');
  for (const [name, text] of Object.entries(makeTokenizerFiles())) await writeFile(join(folder.path, name), text);
  return folder;
}
