// The rows of the route table that belong to batches: begin, look, append tasks, read groups, acknowledge, cancel.

import { z } from 'zod';
import { ackReply, ackRequest, appendTasksRequest, batchList, batchRequest, batchStates, batchView, groupPage } from '../batch.ts';
import { groupsMediaType } from '../binary/group-binary.ts';
import { batchId, seriesId } from '../ids.ts';
import { bodyErrors, json, longestWaitSeconds, mostListed, type Route, waitQuery } from './route.ts';

const batchParams = z.strictObject({ id: batchId });
const wait = z.coerce.number().min(0).max(longestWaitSeconds).default(0);

export const batchRoutes = {
  createBatch: {
    method: 'POST',
    path: '/v1/batches',
    tag: 'batches',
    summary: 'Begin a batch. A repeated id with the same content changes nothing.',
    body: batchRequest,
    replies: { 200: json('The batch as it stands.', batchView) },
    errors: ['unknown-scenario', 'task-invalid', 'conflict', 'not-running', ...bodyErrors],
  },
  listBatches: {
    method: 'GET',
    path: '/v1/batches',
    tag: 'batches',
    summary: 'List batches in the order of their beginning.',
    query: z.strictObject({
      state: z.enum(batchStates).optional(),
      series: seriesId.optional(),
      after: z.string().min(1).max(128).optional().describe('The `next` of the page before.'),
      limit: z.coerce.number().int().min(1).max(mostListed).default(100),
    }),
    replies: { 200: json('One page.', batchList) },
    errors: [],
  },
  getBatch: {
    method: 'GET',
    path: '/v1/batches/{id}',
    tag: 'batches',
    summary: 'One batch: its state, its groups by state, and what was wasted.',
    params: batchParams,
    query: waitQuery('its end'),
    replies: { 200: json('The batch as it stands.', batchView) },
    errors: ['not-found'],
  },
  appendTasks: {
    method: 'POST',
    path: '/v1/batches/{id}/tasks',
    tag: 'batches',
    summary: 'Append tasks, or say that no more will come.',
    params: batchParams,
    body: appendTasksRequest,
    replies: { 200: json('The batch as it stands.', batchView) },
    errors: ['not-found', 'task-invalid', 'conflict', 'not-running', ...bodyErrors],
  },
  readGroups: {
    method: 'GET',
    path: '/v1/batches/{id}/groups',
    tag: 'batches',
    summary: 'Delivered groups in the order of their places; as JSON, as a compact binary, or as server-sent events.',
    params: batchParams,
    query: z.strictObject({
      after: z.coerce.number().int().min(0).optional().describe('The last `seq` already seen.'),
      consumer: z.string().min(1).max(128).optional().describe('Without `after`: from the last acknowledgement of this consumer.'),
      wait: wait.describe('Seconds to wait for at least one group.'),
      limit: z.coerce.number().int().min(1).max(256).default(64),
      trajectories: z
        .enum(['true', 'false'])
        .default('false')
        .describe('Whether the groups bring their trajectories; the binary always does.'),
    }),
    replies: {
      200: {
        description: 'One page, or each group as an event with its `seq` as id and `batch-end` at the end.',
        content: { 'application/json': groupPage, [groupsMediaType]: 'binary', 'text/event-stream': 'text' },
      },
    },
    errors: ['not-found', 'not-acceptable'],
  },
  ackGroups: {
    method: 'POST',
    path: '/v1/batches/{id}/ack',
    tag: 'batches',
    summary: 'This consumer has every group up to `through`. Acknowledgements never go back.',
    params: batchParams,
    body: ackRequest,
    replies: { 200: json('How far this consumer is.', ackReply) },
    errors: ['not-found', ...bodyErrors],
  },
  cancelBatch: {
    method: 'DELETE',
    path: '/v1/batches/{id}',
    tag: 'batches',
    summary: 'Cancel a batch: what is queued at once, what runs within a second. Delivered groups stay readable.',
    params: batchParams,
    replies: { 200: json('The batch as it stands.', batchView) },
    errors: ['not-found'],
  },
} as const satisfies Record<string, Route>;
