// The routes through which a trainer posts back what it computed, and through which it is read.

import { z } from 'zod';
import { rolloutId } from '../ids.ts';
import { trainerRun, trainerSampleList, trainerStepList, trainerStepRequest, trainerStepView } from '../trainer.ts';
import { bodyErrors, json, mostListed, type Route } from './route.ts';

export const trainerRoutes = {
  postTrainerStep: {
    method: 'POST',
    path: '/v1/trainer/steps',
    tag: 'trainer',
    summary:
      'Post the numbers of an optimizer step, with advantages and recomputed logprobs of some of its rollouts. A step that is posted again replaces itself.',
    body: trainerStepRequest,
    replies: { 200: json('The step, with how far recorded and recomputed logprobs are apart.', trainerStepView) },
    errors: [...bodyErrors],
  },
  listTrainerSteps: {
    method: 'GET',
    path: '/v1/trainer/steps',
    tag: 'trainer',
    summary: 'List the steps of a training run.',
    query: z.strictObject({
      run: trainerRun.optional().describe('Default: the run with the newest step.'),
      order: z.enum(['oldest', 'newest']).default('oldest').describe('Which steps come first; keep it the same for all pages.'),
      after: z.coerce.number().int().min(0).optional().describe('The `next` of the previous page.'),
      limit: z.coerce.number().int().min(1).max(mostListed).default(100),
    }),
    replies: { 200: json('One page, and the names of all runs.', trainerStepList) },
    errors: [],
  },
  readTrainerSamples: {
    method: 'GET',
    path: '/v1/rollouts/{id}/trainer',
    tag: 'trainer',
    summary: 'What trainers computed for the tokens of a rollout, the newest step first.',
    params: z.strictObject({ id: rolloutId }),
    replies: { 200: json('The samples; empty if no trainer posted one.', trainerSampleList) },
    errors: [],
  },
} as const satisfies Record<string, Route>;
