// What `millrace task attack` and the processes that play its hackers say to each other. A hacker may freeze the process that
// judges it, so it is never the one of the command.

import { limits } from '@millrace/protocol';
import { serviceConfig } from '@millrace/server';
import { z } from 'zod';

export const playerOrder = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('open'), config: serviceConfig, folder: z.string() }),
  z.object({
    kind: z.literal('attack'),
    /** Tasks with the same key share their honest failures. */
    key: z.string(),
    scenario: z.string(),
    task: z.record(z.string(), z.unknown()),
    limits,
    hacker: z.string(),
  }),
]);
export type PlayerOrder = z.infer<typeof playerOrder>;
export type AttackOrder = Extract<PlayerOrder, { kind: 'attack' }>;

/** `skipped`: the hacker does not apply. `broken`: the task cannot be attacked. */
export const playerReport = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('ready') }),
  z.object({ kind: z.literal('beat') }),
  z.object({
    kind: z.literal('attacked'),
    outcome: z.enum(['held', 'rewarded', 'escaped', 'froze']),
    why: z.string(),
    reward: z.number().nullable(),
  }),
  z.object({ kind: z.literal('skipped') }),
  z.object({ kind: z.literal('broken'), why: z.string() }),
]);
export type PlayerReport = z.infer<typeof playerReport>;
