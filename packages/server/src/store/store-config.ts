// Settings of the store: how much disk it may use, and where trajectories are kept.

import { z } from 'zod';
import type { DiskLimits } from './disk-budget.ts';

/** The name of the store's file in the data folder. */
export const storeFile = 'millrace.db';

export const storeConfig = z.strictObject({
  budgetMib: z
    .number()
    .gt(0)
    .optional()
    .describe(
      "How much disk the store's file and log may use. Above it, the store is full: submissions get 507, and queued rollouts wait.",
    ),
  leastFreeMib: z
    .number()
    .min(0)
    .default(256)
    .describe('The store is also full when less than this is free on its disk; running rollouts need it to be saved.'),
});

export type StoreConfig = z.infer<typeof storeConfig>;

export function toDiskLimits({ budgetMib, leastFreeMib }: StoreConfig): DiskLimits {
  const mib = 2 ** 20;
  return { leastFreeBytes: leastFreeMib * mib, ...(budgetMib !== undefined && { budgetBytes: budgetMib * mib }) };
}
