// The policy's weights on the wire: a trainer pauses sampling, changes the weights, and resumes with a new version. All three routes
// return the current state.

import { z } from 'zod';

/**
 * - running: turns are sampled
 * - pausing: no new call to a backend starts, and some are still running
 * - paused: every live worker knows about the pause and has no call running
 */
export const policyStates = ['running', 'pausing', 'paused'] as const;
export type PolicyState = (typeof policyStates)[number];

/**
 * - wait: running calls finish, new ones wait
 * - abort: running calls are cut, and continue from their partial tokens after the pause
 */
export const pauseModes = ['wait', 'abort'] as const;
export type PauseMode = (typeof pauseModes)[number];

/** A caller that pauses may give a name, and then only the same name ends the pause. */
const pauseOwner = z.string().min(1).max(128);

export const pauseRequest = z
  .strictObject({
    owner: pauseOwner
      .optional()
      .describe('Who pauses. Only a resume with the same owner, or with `force`, ends this pause. Default: anyone can end it.'),
    mode: z.enum(pauseModes).default('wait').describe('A `wait` pause can be changed to `abort`, but not the other way round.'),
  })
  .prefault({});
export type PauseInput = z.input<typeof pauseRequest>;

export const resumeRequest = z
  .strictObject({
    policy_version: z
      .int()
      .min(0)
      .optional()
      .describe('The version of the weights that all backends serve from now on. Default: unchanged.'),
    caches_flushed: z
      .boolean()
      .default(true)
      .describe('Whether the backends lost their prefix caches. If so, rollouts may move to other backends.'),
    salt_caches: z
      .boolean()
      .default(true)
      .describe(
        'After new weights with unflushed caches: whether calls carry a cache salt, so that no prefix computed under the old weights is used.',
      ),
    adapter: z
      .string()
      .min(1)
      .max(256)
      .nullable()
      .optional()
      .describe('The LoRA adapter that samples from now on, as the backends name it; null for the base model. Default: unchanged.'),
    owner: pauseOwner.optional().describe('The owner of the pause that this resume ends; needed if the pause has one.'),
    force: z.boolean().default(false).describe('Ends a pause of another owner, such as a trainer that died during one.'),
    allow_lower: z
      .boolean()
      .default(false)
      .describe('Allows a version below the current one, for a trainer that starts again from an earlier checkpoint.'),
  })
  .prefault({});
export type ResumeInput = z.input<typeof resumeRequest>;

export const policyView = z.object({
  state: z.enum(policyStates),
  mode: z.enum(pauseModes).nullable().describe('The mode of the pause; null while running.'),
  owner: z.string().nullable().default(null).describe('Who paused; null while running, and for a pause that anyone can end.'),
  policy_version: z
    .int()
    .describe('The highest version that a resume or a joining backend has reported since the last resume that lowered it.'),
  adapter: z.string().nullable().default(null).describe('The LoRA adapter that samples; null for the base model.'),
  generating: z
    .int()
    .describe('Calls to backends that are running on all workers. At most one second old while running; exactly 0 when paused.'),
  since: z.iso.datetime().describe('When this state started.'),
});
export type PolicyView = z.infer<typeof policyView>;
