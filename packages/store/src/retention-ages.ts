// How long finished work is kept, by its outcome; and the configuration of it.

import { z } from 'zod';

/** `plain`: a rollout without a group. Otherwise what became of its group; `surplus` covers groups that were too stale. */
type RetainedOutcome = 'delivered' | 'uniform' | 'surplus' | 'failed' | 'plain';

export interface RetentionAges {
  /** For outcomes that are not named. */
  readonly endedMs: number;
  readonly eventsMs: number;
  readonly outcomes?: Readonly<Partial<Record<RetainedOutcome, number>>>;
  /** From this age on, trajectories are kept without text and messages; as long as the trajectory unless set. */
  readonly textMs?: number;
  /** Called after each step with how long it held the write lock. */
  readonly onStep?: (lockMs: number) => void;
}

const toMs = (ofHours: number) => ofHours * 3_600_000;
const hours = () => z.number().gt(0);

export const retentionConfig = z.strictObject({
  endedHours: hours().default(168).describe('How long finished rollouts and their trajectories are kept, where no other field says so.'),
  eventsHours: hours().default(24).describe('How long the event log is kept.'),
  plainHours: hours().optional().describe('The same for rollouts that belong to no batch.'),
  deliveredHours: hours().optional().describe('The same for delivered groups, after their batch ended and was received.'),
  uniformHours: hours().optional().describe('The same for groups that were not informative, after their batch ended.'),
  failedHours: hours().optional().describe('The same for groups that failed, after their batch ended.'),
  surplusHours: hours().optional().describe('The same for groups that no batch needed or that were too stale, after their batch ended.'),
  textHours: hours()
    .optional()
    .describe('How long text and messages of trajectories are kept; token ids and logprobs stay. As long as the trajectory unless set.'),
});

type RetentionConfig = z.infer<typeof retentionConfig>;

export function toRetentionAges(config: RetentionConfig): RetentionAges {
  const { plainHours: plain, deliveredHours: delivered, uniformHours: uniform, failedHours: failed, surplusHours: surplus } = config;
  const set = Object.entries({ plain, delivered, uniform, failed, surplus }).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, toMs(value)] as const],
  );
  return {
    endedMs: toMs(config.endedHours),
    eventsMs: toMs(config.eventsHours),
    outcomes: Object.fromEntries(set),
    ...(config.textHours !== undefined && { textMs: toMs(config.textHours) }),
  };
}
