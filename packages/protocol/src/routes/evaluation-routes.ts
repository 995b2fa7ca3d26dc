// The routes of evaluations: create, read, list, read the tasks, cancel.

import { z } from 'zod';
import { evaluationList, evaluationRequest, evaluationStates, evaluationTaskPage, evaluationView } from '../evaluation.ts';
import { evaluationId } from '../ids.ts';
import { bodyErrors, json, type Route, waitQuery } from './route.ts';

const evaluationParams = z.strictObject({ id: evaluationId });

export const evaluationRoutes = {
  createEvaluation: {
    method: 'POST',
    path: '/v1/evaluations',
    tag: 'evaluations',
    summary: 'Start an evaluation. Repeating a request with the same id and content changes nothing.',
    body: evaluationRequest,
    replies: { 200: json('The evaluation.', evaluationView) },
    errors: ['unknown-scenario', 'task-invalid', 'conflict', 'not-running', ...bodyErrors],
  },
  listEvaluations: {
    method: 'GET',
    path: '/v1/evaluations',
    tag: 'evaluations',
    summary: 'List evaluations, oldest first.',
    query: z.strictObject({
      state: z.enum(evaluationStates).optional(),
      after: z.string().min(1).max(128).optional().describe('The `next` of the previous page.'),
      limit: z.coerce.number().int().min(1).max(100).default(20),
    }),
    replies: { 200: json('One page.', evaluationList) },
    errors: [],
  },
  getEvaluation: {
    method: 'GET',
    path: '/v1/evaluations/{id}',
    tag: 'evaluations',
    summary: 'Get an evaluation: its progress, and the numbers so far or the final ones.',
    params: evaluationParams,
    query: waitQuery('its end'),
    replies: { 200: json('The evaluation.', evaluationView) },
    errors: ['not-found'],
  },
  readEvaluationTasks: {
    method: 'GET',
    path: '/v1/evaluations/{id}/tasks',
    tag: 'evaluations',
    summary: 'Read the tasks of an evaluation in their order, each with its samples so far.',
    params: evaluationParams,
    query: z.strictObject({
      from: z.coerce.number().int().min(0).default(0).describe('The index of the first task.'),
      limit: z.coerce.number().int().min(1).max(1000).default(100),
    }),
    replies: { 200: json('One page.', evaluationTaskPage) },
    errors: ['not-found'],
  },
  retryEvaluation: {
    method: 'POST',
    path: '/v1/evaluations/{id}/retry',
    tag: 'evaluations',
    summary: 'Take every sample that ended without a reward again. Samples with a reward stay as they are.',
    params: evaluationParams,
    replies: { 200: json('The evaluation; open again if a sample was taken again.', evaluationView) },
    errors: ['not-found', 'conflict', 'not-running'],
  },
  cancelEvaluation: {
    method: 'DELETE',
    path: '/v1/evaluations/{id}',
    tag: 'evaluations',
    summary: 'Cancel an evaluation: queued samples at once, running ones within a second. What was measured stays readable.',
    params: evaluationParams,
    replies: { 200: json('The evaluation.', evaluationView) },
    errors: ['not-found'],
  },
} as const satisfies Record<string, Route>;
