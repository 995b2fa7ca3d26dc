// The routes that only the dashboard reads. They are not part of the API: no client has them, and they change with the page that uses
// them. Everything else that the page shows or does goes through the routes of the API.

import { z } from 'zod';
import { event } from '../event.ts';
import { rolloutId } from '../ids.ts';
import { blames, errorCodes } from '../plain/error.ts';
import { rolloutStates } from '../plain/rollout-state.ts';
import { json, type Route } from './route.ts';

/** What a key allows, as the page needs it to show or hide its buttons. */
export const dashboardSession = z.object({
  right: z.enum(['read', 'submit', 'admin']),
  live: z.boolean().describe('Whether a service answers; false for a viewer of files, which has no events and no status.'),
  title: z.string(),
});
export type DashboardSession = z.infer<typeof dashboardSession>;

/** One line of the list. Times are milliseconds since 1970. */
export const briefRollout = z.object({
  id: z.string(),
  scenario: z.string(),
  group: z.string().nullable(),
  batch: z.string().nullable(),
  state: z.enum(rolloutStates),
  attempt: z.int(),
  reward: z.number().nullable(),
  stop_reason: z.string().nullable(),
  turns: z.int(),
  sampled: z.int(),
  context: z.int(),
  busy_ms: z.number().describe('In its stages, without waiting.'),
  code: z.string().nullable(),
  blame: z.string().nullable(),
  message: z.string().nullable(),
  version: z.int().nullable().describe('The policy version of its last token.'),
  created_at: z.number(),
  ended_at: z.number().nullable(),
});
export type BriefRollout = z.infer<typeof briefRollout>;

export const briefSorts = ['created', 'ended', 'reward', 'turns', 'sampled', 'busy', 'version', 'id'] as const;
export type BriefSort = (typeof briefSorts)[number];

const text = z.string().min(1).max(256).optional();
const number = z.coerce.number().optional();

export const briefQuery = z.strictObject({
  state: z.enum([...rolloutStates, 'live', 'ended']).optional(),
  scenario: text,
  group: text,
  batch: text,
  blame: z.enum(blames).optional(),
  code: z.enum(errorCodes).optional(),
  reward_min: number,
  reward_max: number,
  rewarded: z.enum(['yes', 'no']).optional(),
  version: z.coerce.number().int().optional(),
  text,
  sort: z.enum(briefSorts).default('created'),
  order: z.enum(['desc', 'asc']).default('desc'),
  offset: z.coerce.number().int().min(0).default(0),
  limit: z.coerce.number().int().min(0).max(1000).default(200),
});
export type BriefQuery = z.infer<typeof briefQuery>;

export const briefPage = z.object({
  total: z.int(),
  mean_reward: z.number().nullable().describe('Over the rewards of all that match.'),
  offset: z.int(),
  rows: z.array(briefRollout),
  indexed: z.int().describe('How many rollouts the server has read so far.'),
  complete: z.boolean().describe('Whether that is all, or as many as it keeps.'),
});
export type BriefPage = z.infer<typeof briefPage>;

export const failureGroup = z.object({
  code: z.string(),
  blame: z.string(),
  count: z.int(),
  rewarded: z.int().describe('Those that the agent caused: done, with the lowest reward.'),
  scenarios: z.array(z.string()),
  example: z.object({ id: z.string(), message: z.string() }),
  newest_at: z.number(),
});
export type FailureGroup = z.infer<typeof failureGroup>;

export const versionPoint = z.object({
  scenario: z.string(),
  version: z.int(),
  rollouts: z.int(),
  mean_reward: z.number(),
  solved: z.number().describe('The share with the highest reward that the scenario has given.'),
  informative: z.number().nullable().describe('The share of groups whose rewards differ.'),
  sampled: z.number().describe('Mean of sampled tokens.'),
  turns: z.number(),
  first_at: z.number(),
});
export type VersionPoint = z.infer<typeof versionPoint>;

export const dashboardSummary = z.object({
  scenarios: z.array(z.object({ name: z.string(), count: z.int() })),
  failures: z.array(failureGroup),
  versions: z.array(versionPoint),
  indexed: z.int(),
  complete: z.boolean(),
});
export type DashboardSummary = z.infer<typeof dashboardSummary>;

/** The submission of a rollout, ready to be submitted again; without its id. */
export const dashboardTask = z.object({ submission: z.record(z.string(), z.unknown()) });
export type DashboardTask = z.infer<typeof dashboardTask>;

/** The text of each distinct token of a trajectory; null if this process has no tokenizer to read it with. */
export const tokenPieces = z.object({ pieces: z.record(z.string(), z.string()).nullable(), reason: z.string().optional() });
export type TokenPieces = z.infer<typeof tokenPieces>;

/** Where the page and its files are. They hold no data and need no key. */
export const dashboardPaths = ['/', '/favicon.svg', '/assets/:name'] as const;

const rolloutParams = z.strictObject({ id: rolloutId });

export const dashboardRoutes = {
  session: {
    method: 'GET',
    path: '/dashboard/api/session',
    tag: 'service',
    summary: 'What the key allows.',
    replies: { 200: json('The session.', dashboardSession) },
    errors: [],
  },
  rollouts: {
    method: 'GET',
    path: '/dashboard/api/rollouts',
    tag: 'service',
    summary: 'Any window of the rollouts that match, sorted.',
    query: briefQuery,
    replies: { 200: json('The window.', briefPage) },
    errors: [],
  },
  live: {
    method: 'GET',
    path: '/dashboard/api/live',
    tag: 'service',
    summary: 'New events as server-sent events, at most twice a second; of very many, only the newest.',
    replies: { 200: { description: 'Like those of /v1/events.', content: { 'text/event-stream': 'text' } } },
    errors: ['not-running'],
  },
  summary: {
    method: 'GET',
    path: '/dashboard/api/summary',
    tag: 'service',
    summary: 'Failures by code, and rewards by policy version.',
    replies: { 200: json('The summary.', dashboardSummary) },
    errors: [],
  },
  task: {
    method: 'GET',
    path: '/dashboard/api/rollouts/{id}/task',
    tag: 'service',
    summary: 'The submission of a rollout.',
    params: rolloutParams,
    replies: { 200: json('The submission.', dashboardTask) },
    errors: ['not-found'],
  },
  events: {
    method: 'GET',
    path: '/dashboard/api/rollouts/{id}/events',
    tag: 'service',
    summary: 'What the event log still has about a rollout.',
    params: rolloutParams,
    replies: { 200: json('The events.', z.object({ events: z.array(event) })) },
    errors: ['not-found'],
  },
  pieces: {
    method: 'GET',
    path: '/dashboard/api/rollouts/{id}/pieces',
    tag: 'service',
    summary: 'The text of each token of its trajectory.',
    params: rolloutParams,
    replies: { 200: json('The texts.', tokenPieces) },
    errors: ['not-found'],
  },
} as const satisfies Record<string, Route>;
