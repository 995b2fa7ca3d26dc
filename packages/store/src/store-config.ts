// Settings of the store: how much disk it may use, and where trajectories are kept.

import { messageOf } from '@millrace/protocol';
import { z } from 'zod';
import { parseBlobPlace } from './blob-place.ts';
import type { DiskLimits } from './disk-budget.ts';

export const storeConfig = z.strictObject({
  address: z
    .string()
    .min(1)
    .optional()
    .describe(
      'A PostgreSQL database, `postgres://user@host:port/database`, or the path of a SQLite file; `millrace.db` in the data folder unless set. Keep a password in PGPASSWORD or ~/.pgpass.',
    ),
  servers: z
    .array(z.url({ protocol: /^https?$/ }))
    .default([])
    .describe(
      'For workers: servers through which they reach the store, any of which will do, with the key in MILLRACE_KEY. `millrace worker --join` sets it; a server ignores it.',
    ),
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
  blobs: z
    .string()
    .default('store')
    .superRefine((text, context) => {
      try {
        parseBlobPlace(text);
      } catch (error) {
        context.addIssue({ code: 'custom', message: messageOf(error) });
      }
    })
    .describe(
      'Where new trajectories are kept: `store`, `folder:/path`, or `s3://bucket/prefix?endpoint=URL&region=NAME` with credentials in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.',
    ),
});

type StoreConfig = z.infer<typeof storeConfig>;

export function toDiskLimits({ budgetMib, leastFreeMib }: StoreConfig): DiskLimits {
  const mib = 2 ** 20;
  return { leastFreeBytes: leastFreeMib * mib, ...(budgetMib !== undefined && { budgetBytes: budgetMib * mib }) };
}
