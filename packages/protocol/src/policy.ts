// The policy's weights on the wire: sampling is paused while a trainer changes them, and resumed under the version that it names.
// All three routes answer with the policy as it stands.

import { z } from 'zod';

/**
 * - running: turns are sampled
 * - pausing: no call to a backend begins any more, some are still under way
 * - paused: every live worker has heard of the pause and has no call under way
 */
export const policyStates = ['running', 'pausing', 'paused'] as const;
export type PolicyState = (typeof policyStates)[number];

/**
 * - wait: a call that is under way is finished, the next one waits
 * - abort: a call that is under way is cut, and continued from its partial tokens after the pause
 */
export const pauseModes = ['wait', 'abort'] as const;
export type PauseMode = (typeof pauseModes)[number];

export const pauseRequest = z
  .strictObject({
    mode: z.enum(pauseModes).default('wait').describe('A pause that waits becomes one that aborts when asked to, never the other way.'),
  })
  .prefault({});
export type PauseInput = z.input<typeof pauseRequest>;

export const resumeRequest = z
  .strictObject({
    policy_version: z.int().min(0).optional().describe('Which weights all backends serve from now on; absent: those that they served.'),
    caches_flushed: z
      .boolean()
      .default(true)
      .describe('Whether the backends lost their prefix caches, so that rollouts may change places.'),
  })
  .prefault({});
export type ResumeInput = z.input<typeof resumeRequest>;

export const policyView = z.object({
  state: z.enum(policyStates),
  mode: z.enum(pauseModes).nullable().describe('Of the pause; null while running.'),
  policy_version: z.int().describe('The highest that a resume or a joining backend has named.'),
  generating: z.int().describe('Calls to backends under way over all workers; at most a second old while running, exact 0 when paused.'),
  since: z.iso.datetime().describe('When this state began.'),
});
export type PolicyView = z.infer<typeof policyView>;
