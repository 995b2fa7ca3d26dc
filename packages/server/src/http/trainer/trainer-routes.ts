// The routes through which a trainer posts back what it computed. A step is compared with the recorded trajectories when it arrives, and
// stored with what came of it before the reply.

import {
  definedOf,
  type LogprobMismatch,
  routes,
  type TrainerSample,
  type TrainerStepRequest,
  type TrainerStepView,
} from '@millrace/protocol';
import { isLostTrajectory, type NewTrainerStep, type Store, type TrainerStepRecord, toTime } from '@millrace/store';
import type { FastifyInstance } from 'fastify';
import type { AppContext } from '../context/context.ts';
import { mount } from '../request/mount.ts';
import { findAlarm, MismatchTally } from './mismatch.ts';

/** How many earlier steps say what is usual. */
const comparedSteps = 20;

export function mountTrainer(app: FastifyInstance, { store }: AppContext): void {
  mount(app, routes.postTrainerStep, async ({ body: { samples, ...given } }) => {
    const { known, unknown, mismatch } = await compare(store, samples);
    const step = toStep(given, { unknown, mismatch, alarm: findAlarm(mismatch, await readBefore(store, given)) });
    const atMs = await store.trainer.putTrainerStep(step, known);
    return toView({ ...step, samples: known.length, atMs });
  });
  mount(app, routes.listTrainerSteps, async ({ query: { run, order, after, limit } }) => {
    const runs = await store.trainer.trainerRuns();
    const wanted = run ?? runs[0]?.run;
    const steps = wanted === undefined ? [] : await store.trainer.trainerSteps(definedOf({ run: wanted, order, after, limit: limit + 1 }));
    const page = steps.slice(0, limit);
    return {
      steps: page.map(toView),
      next: steps.length > limit ? (page.at(-1)?.step ?? null) : null,
      runs: runs.map(({ newestAtMs, ...rest }) => ({ ...rest, newest_at: toTime(newestAtMs) })),
    };
  });
  mount(app, routes.readTrainerSamples, async ({ params: { id } }) => {
    const samples = await store.trainer.trainerSamples(id);
    return {
      samples: samples.map(({ sample, run, step, atMs, policyVersion }) => ({
        ...sample,
        run,
        step,
        at: toTime(atMs),
        policy_version: policyVersion,
      })),
    };
  });
}

/** One trajectory at a time is in memory. */
async function compare(store: Store, samples: readonly TrainerSample[]) {
  const tally = new MismatchTally();
  const known: TrainerSample[] = [];
  for (const sample of samples) {
    const trajectory = await readTrajectory(store, sample);
    if (trajectory === undefined) continue;
    tally.add(sample, trajectory);
    known.push(sample);
  }
  return { known, unknown: samples.length - known.length, mismatch: tally.read() };
}

/** Undefined for one that retention deleted, or that never was. */
async function readTrajectory(store: Store, { rollout_id: id }: TrainerSample) {
  try {
    return await store.trajectory(id);
  } catch (error) {
    if (isLostTrajectory(error)) return undefined;
    throw error;
  }
}

async function readBefore(store: Store, { run, step }: Pick<TrainerStepRequest, 'run' | 'step'>): Promise<LogprobMismatch[][]> {
  const before = await store.trainer.trainerSteps({ run, order: 'newest', after: step, limit: comparedSteps });
  return before.map(({ mismatch }) => mismatch);
}

function toStep(
  { run, step, policy_version, loss, kl, entropy, clip_share, metrics }: Omit<TrainerStepRequest, 'samples'>,
  found: Pick<NewTrainerStep, 'mismatch' | 'alarm'> & { readonly unknown: number },
): NewTrainerStep {
  return {
    run,
    step,
    policy_version: policy_version ?? null,
    loss: loss ?? null,
    kl: kl ?? null,
    entropy: entropy ?? null,
    clip_share: clip_share ?? null,
    metrics,
    unknown_samples: found.unknown,
    mismatch: found.mismatch,
    alarm: found.alarm,
  };
}

function toView({ atMs, ...step }: TrainerStepRecord): TrainerStepView {
  return { ...step, at: toTime(atMs) };
}
