// The routes of the HTTP API as one table: the service registers them, the OpenAPI document is generated from them, and clients take
// their paths from here. A route that is not in this table does not exist.

import { z } from 'zod';
import { backendList, backendView, joinRequest } from '../backend.ts';
import { trajectoryMediaType } from '../binary/trajectory-binary.ts';
import { backendId, batchId, groupId, rolloutId } from '../ids.ts';
import { rolloutStates } from '../plain/rollout-state.ts';
import { cancelReply, forkReply, forkRequest, rolloutList, rolloutView, savedTurnList, submitReply, submitRequest } from '../rollout.ts';
import { trajectoryView } from '../trajectory.ts';
import { serviceStatus } from '../worker.ts';
import { batchRoutes } from './batch-routes.ts';
import { evaluationRoutes } from './evaluation-routes.ts';
import { gatewayRoutes } from './gateway-routes.ts';
import { machineRoutes } from './machine-routes.ts';
import { policyRoutes } from './policy-routes.ts';
import { llmServerRequest, processReply, processRequest, prorlCancelRequest, prorlReply, prorlStatus } from './prorl.ts';
import { bodyErrors, intakeErrors, json, mostListed, type Route, waitQuery } from './route.ts';
import { trainerRoutes } from './trainer-routes.ts';

export const leaveReply = z.object({ id: backendId });
export const healthReply = z.object({ status: z.literal('ok') });

const rolloutParams = z.strictObject({ id: rolloutId });
const backendParams = z.strictObject({ id: backendId });

export const routes = {
  submitRollouts: {
    method: 'POST',
    path: '/v1/rollouts',
    tag: 'rollouts',
    summary: 'Submit rollouts: all are accepted or none. Repeating a request with the same ids and content changes nothing.',
    query: z.strictObject({
      check: z
        .enum(['true', 'false'])
        .default('false')
        .describe('Whether the rollouts are only checked: nothing is stored, and the reply has no rollouts.'),
    }),
    body: submitRequest,
    replies: { 200: json('The accepted rollouts, in the order of the request.', submitReply) },
    errors: ['unknown-scenario', 'task-invalid', 'conflict', ...intakeErrors],
  },
  listRollouts: {
    method: 'GET',
    path: '/v1/rollouts',
    tag: 'rollouts',
    summary: 'List rollouts in the order of submission, or of their ids where a prefix is given.',
    query: z.strictObject({
      state: z.enum(rolloutStates).optional(),
      group: groupId.optional(),
      batch: batchId.optional().describe('The batch that sampled it.'),
      scenario: z.string().min(1).max(128).optional(),
      prefix: rolloutId.optional().describe('Rollouts whose id begins with this, in the order of their ids.'),
      order: z.enum(['oldest', 'newest']).default('oldest').describe('Which rollouts come first; keep it the same for all pages.'),
      after: z.string().min(1).max(128).optional().describe('The `next` of the previous page.'),
      limit: z.coerce.number().int().min(1).max(mostListed).default(100),
    }),
    replies: { 200: json('One page.', rolloutList) },
    errors: [],
  },
  getRollout: {
    method: 'GET',
    path: '/v1/rollouts/{id}',
    tag: 'rollouts',
    summary: 'Get a rollout: its state and, after it has ended, its result.',
    params: rolloutParams,
    query: waitQuery('its end'),
    replies: { 200: json('The rollout.', rolloutView) },
    errors: ['not-found'],
  },
  getTrajectory: {
    method: 'GET',
    path: '/v1/rollouts/{id}/trajectory',
    tag: 'rollouts',
    summary: 'Get the token-exact record of a rollout that has ended.',
    params: rolloutParams,
    replies: {
      200: {
        description: 'The trajectory, in the format of the Accept header.',
        content: { 'application/json': trajectoryView, [trajectoryMediaType]: 'binary' },
      },
    },
    errors: ['not-found', 'not-acceptable'],
  },
  cancelRollout: {
    method: 'DELETE',
    path: '/v1/rollouts/{id}',
    tag: 'rollouts',
    summary: 'Cancel a rollout, even before its submission arrives.',
    params: rolloutParams,
    replies: { 200: json('The outcome.', cancelReply) },
    errors: [],
  },
  retryRollout: {
    method: 'POST',
    path: '/v1/rollouts/{id}/retry',
    tag: 'rollouts',
    summary: 'Submit the task of a rollout that ended without a reward again. The new rollout has its id with a number: `ID.1`, `ID.2`.',
    params: rolloutParams,
    replies: { 200: json('The rollout that tries it again; the one that does so already, if there is one.', rolloutView) },
    errors: ['not-found', 'conflict', ...intakeErrors],
  },
  listTurns: {
    method: 'GET',
    path: '/v1/rollouts/{id}/turns',
    tag: 'rollouts',
    summary: 'List the turns of a rollout that are saved: while it runs, and after its end with `keep_checkpoints`.',
    params: rolloutParams,
    replies: { 200: json('The turns, in order.', savedTurnList) },
    errors: ['not-found'],
  },
  forkRollout: {
    method: 'POST',
    path: '/v1/rollouts/{id}/forks',
    tag: 'rollouts',
    summary:
      'Start rollouts that share the tokens of another one up to a turn, and its sandbox as it was then. They are in its group, or in one of their own.',
    params: rolloutParams,
    body: forkRequest,
    replies: { 200: json('The forks.', forkReply) },
    errors: ['not-found', 'conflict', ...intakeErrors],
  },
  ...batchRoutes,
  ...evaluationRoutes,
  ...gatewayRoutes,
  joinBackend: {
    method: 'POST',
    path: '/v1/backends',
    tag: 'backends',
    summary: 'Add a backend, or update an existing one.',
    body: joinRequest,
    replies: { 200: json('The backend.', backendView) },
    errors: [...bodyErrors],
  },
  listBackends: {
    method: 'GET',
    path: '/v1/backends',
    tag: 'backends',
    summary: 'List all backends, with the load of each.',
    replies: { 200: json('The backends.', backendList) },
    errors: [],
  },
  leaveBackend: {
    method: 'DELETE',
    path: '/v1/backends/{id}',
    tag: 'backends',
    summary: 'Remove a backend at once.',
    params: backendParams,
    replies: { 200: json('The backend is removed.', leaveReply) },
    errors: ['not-found'],
  },
  drainBackend: {
    method: 'POST',
    path: '/v1/backends/{id}/drain',
    tag: 'backends',
    summary: 'Stop placing new rollouts on a backend.',
    params: backendParams,
    replies: { 200: json('The backend.', backendView) },
    errors: ['not-found'],
  },
  ...policyRoutes,
  ...trainerRoutes,
  ...machineRoutes,
  readEvents: {
    method: 'GET',
    path: '/v1/events',
    tag: 'service',
    summary: 'Read the event log as server-sent events. A Last-Event-ID header takes precedence over `after`.',
    query: z.strictObject({
      after: z.coerce
        .number()
        .int()
        .min(0)
        .optional()
        .describe('The last id already read; 0 reads from the oldest event that is kept. Default: only new events.'),
    }),
    replies: {
      200: {
        description: 'One message per event: its id, its kind as `event`, and the event as `data`.',
        content: { 'text/event-stream': 'text' },
      },
    },
    errors: ['not-running', 'gone'],
  },
  getStatus: {
    method: 'GET',
    path: '/v1/status',
    tag: 'service',
    summary: 'Rollouts by state, workers, backends, the policy, open batches, recent rewards and hints; at most a second old.',
    replies: { 200: json('The service.', serviceStatus) },
    errors: [],
  },
  getHealth: {
    method: 'GET',
    path: '/healthz',
    tag: 'service',
    summary: 'Liveness: the process replies. Needs no key.',
    replies: { 200: json('Alive.', healthReply) },
    errors: [],
  },
  getReadiness: {
    method: 'GET',
    path: '/readyz',
    tag: 'service',
    summary: 'Readiness: submissions would be processed. Otherwise `details.missing` lists what is missing. Needs no key.',
    replies: { 200: json('Ready.', healthReply) },
    errors: ['not-running'],
  },
  getMetrics: {
    method: 'GET',
    path: '/metrics',
    tag: 'service',
    summary: 'Metrics in the Prometheus text format.',
    replies: { 200: { description: 'The metrics.', content: { 'text/plain': 'text' } } },
    errors: [],
  },
  getOpenapi: {
    method: 'GET',
    path: '/openapi.json',
    tag: 'service',
    summary: 'This document.',
    replies: { 200: json('OpenAPI 3.1.', z.record(z.string(), z.unknown())) },
    errors: [],
  },
  prorlStart: {
    method: 'POST',
    path: '/start',
    tag: 'prorl',
    summary: 'Open /process.',
    replies: { 200: json('Started.', prorlReply) },
    errors: [],
  },
  prorlStop: {
    method: 'POST',
    path: '/stop',
    tag: 'prorl',
    summary: 'Close /process and cancel what came through it.',
    replies: { 200: json('Stopped.', prorlReply) },
    errors: ['not-running'],
  },
  prorlStatus: {
    method: 'GET',
    path: '/status',
    tag: 'prorl',
    summary: 'How many rollouts wait and run in each stage.',
    replies: { 200: json('The counts.', prorlStatus) },
    errors: ['not-running'],
  },
  prorlProcess: {
    method: 'POST',
    path: '/process',
    tag: 'prorl',
    summary: 'Run a rollout and return its result when it ends. Closing the connection cancels it.',
    body: processRequest,
    replies: { 200: json('The result, successful or not.', processReply) },
    errors: ['unknown-scenario', 'task-invalid', 'wait-timeout', ...intakeErrors],
  },
  prorlCancel: {
    method: 'POST',
    path: '/cancel',
    tag: 'prorl',
    summary: 'Cancel a job, even before it arrives.',
    body: prorlCancelRequest,
    replies: { 200: json('Requested.', prorlReply) },
    errors: [...bodyErrors],
  },
  prorlAddServer: {
    method: 'POST',
    path: '/add_llm_server',
    tag: 'prorl',
    summary: 'Add a backend by its address.',
    body: llmServerRequest,
    replies: { 200: json('Added, or already known.', prorlReply) },
    errors: [...bodyErrors],
  },
  prorlClearServers: {
    method: 'POST',
    path: '/clear_llm_server',
    tag: 'prorl',
    summary: 'Remove all backends. Rollouts wait for the next one.',
    replies: { 200: json('Removed.', prorlReply) },
    errors: [],
  },
} as const satisfies Record<string, Route>;

export type RouteName = keyof typeof routes;

/** Fills in the `{name}` parameters of a path. */
export function toPath(path: string, params: Readonly<Record<string, string>> = {}): string {
  return path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(params[name] ?? ''));
}
