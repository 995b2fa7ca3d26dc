// The routes of batches: create, read, append tasks, read groups, acknowledge, cancel.

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
    summary: 'Create a batch. Repeating a request with the same id and content changes nothing.',
    body: batchRequest,
    replies: { 200: json('The batch.', batchView) },
    errors: ['unknown-scenario', 'task-invalid', 'conflict', 'not-running', ...bodyErrors],
  },
  listBatches: {
    method: 'GET',
    path: '/v1/batches',
    tag: 'batches',
    summary: 'List batches, oldest first.',
    query: z.strictObject({
      state: z.enum(batchStates).optional(),
      series: seriesId.optional(),
      after: z.string().min(1).max(128).optional().describe('The `next` of the previous page.'),
      limit: z.coerce.number().int().min(1).max(mostListed).default(100),
    }),
    replies: { 200: json('One page.', batchList) },
    errors: [],
  },
  getBatch: {
    method: 'GET',
    path: '/v1/batches/{id}',
    tag: 'batches',
    summary: 'Get a batch: its state, its groups by state, and what was wasted.',
    params: batchParams,
    query: waitQuery('its end'),
    replies: { 200: json('The batch.', batchView) },
    errors: ['not-found'],
  },
  appendTasks: {
    method: 'POST',
    path: '/v1/batches/{id}/tasks',
    tag: 'batches',
    summary: 'Append tasks, or close the list of tasks.',
    params: batchParams,
    body: appendTasksRequest,
    replies: { 200: json('The batch.', batchView) },
    errors: ['not-found', 'task-invalid', 'conflict', 'not-running', ...bodyErrors],
  },
  readGroups: {
    method: 'GET',
    path: '/v1/batches/{id}/groups',
    tag: 'batches',
    summary: 'Read delivered groups by `seq`, as JSON, in a compact binary format, or as server-sent events.',
    params: batchParams,
    query: z.strictObject({
      after: z.coerce.number().int().min(0).optional().describe('The last `seq` already read.'),
      consumer: z.string().min(1).max(128).optional().describe('Without `after`: starts after the last acknowledgement of this consumer.'),
      wait: wait.describe('Seconds to wait for at least one group.'),
      limit: z.coerce.number().int().min(1).max(256).default(64),
      trajectories: z
        .enum(['true', 'false'])
        .default('false')
        .describe('Whether the JSON includes the trajectories; the binary format always does.'),
    }),
    replies: {
      200: {
        description: 'One page; or a stream with one event per group, with its `seq` as id, and `batch-end` at the end.',
        content: { 'application/json': groupPage, [groupsMediaType]: 'binary', 'text/event-stream': 'text' },
      },
    },
    errors: ['not-found', 'not-acceptable'],
  },
  ackGroups: {
    method: 'POST',
    path: '/v1/batches/{id}/ack',
    tag: 'batches',
    summary: 'Acknowledge all groups up to `through` for a consumer. An acknowledgement never moves back.',
    params: batchParams,
    body: ackRequest,
    replies: { 200: json('The last acknowledged `seq` of the consumer.', ackReply) },
    errors: ['not-found', ...bodyErrors],
  },
  resumeBatch: {
    method: 'POST',
    path: '/v1/batches/{id}/resume',
    tag: 'batches',
    summary: 'Resume a paused batch at once, without waiting for a group to succeed. Changes nothing if it is not paused.',
    params: batchParams,
    replies: { 200: json('The batch.', batchView) },
    errors: ['not-found', 'conflict'],
  },
  cancelBatch: {
    method: 'DELETE',
    path: '/v1/batches/{id}',
    tag: 'batches',
    summary: 'Cancel a batch: queued rollouts at once, running ones within a second. Delivered groups stay readable.',
    params: batchParams,
    replies: { 200: json('The batch.', batchView) },
    errors: ['not-found'],
  },
} as const satisfies Record<string, Route>;
