// What the live view reads from the service each second: its status, and the policy and open batches where the status does
// not include them. Fields that a service does not send are absent.

import type { Client } from '@millrace/client';
import type { BatchView, PolicyView, ServiceStatus } from '@millrace/protocol';
import { z } from 'zod';
import { toHints } from '../service/hints.ts';

const maybe = <T extends z.ZodType>(schema: T) => schema.optional().catch(undefined);

const batch = z.object({
  id: z.string(),
  target: z.number(),
  delivered: z.number(),
  open_groups: z.number(),
  mean_reward: maybe(z.number().nullable()),
  informative_share: maybe(z.number().nullable()),
  scenario: z.string(),
});
export type OpenBatch = z.infer<typeof batch>;

const policy = z.object({ state: z.string(), policy_version: z.number() });
const rate = z.object({ tokens_per_s: maybe(z.number()) });

const more = z.object({
  policy: maybe(policy),
  batches: maybe(z.array(batch)),
  recent: maybe(z.object({ ended: z.number(), failed: z.number(), rewarded: z.number(), mean_reward: z.number().nullable() })),
  tokens_per_s: maybe(z.number()),
  backends: maybe(z.array(rate.extend({ id: z.string() }))),
  workers: maybe(z.array(z.object({ report: maybe(rate.nullable()) }))),
});

export interface ServiceNow {
  readonly status: ServiceStatus;
  readonly policy: z.infer<typeof policy> | undefined;
  readonly batches: readonly OpenBatch[];
  readonly recent: z.infer<typeof more>['recent'];
  /** Tokens that are sampled per second now, also inside a turn; absent where only finished turns are counted. */
  readonly tokensPerSecond: number | undefined;
  readonly backendTokens: Readonly<Record<string, number>>;
  readonly hints: readonly string[];
}

interface Fallback {
  readonly policy?: PolicyView | undefined;
  readonly batches?: readonly BatchView[];
}

export async function readServiceNow(client: Client, signal?: AbortSignal): Promise<ServiceNow> {
  const waiting = signal === undefined ? {} : { signal };
  const status = await client.status(waiting);
  const sent = more.parse(status);
  // A service that knows neither route still shows its status.
  const policyView = sent.policy === undefined ? await client.policy.get(waiting).catch(() => undefined) : undefined;
  const batches = sent.batches === undefined ? await readOpenBatches(client, waiting).catch(() => []) : [];
  return toServiceNow(status, { policy: policyView, batches });
}

export function toServiceNow(status: ServiceStatus, fallback: Fallback = {}): ServiceNow {
  const sent = more.parse(status);
  const perWorker = (sent.workers ?? []).flatMap(({ report }) => report?.tokens_per_s ?? []);
  const ofBackends = (sent.backends ?? []).flatMap(({ id, tokens_per_s: tokens }) => (tokens === undefined ? [] : [[id, tokens] as const]));
  return {
    status,
    policy: sent.policy ?? fallback.policy,
    batches: sent.batches ?? (fallback.batches ?? []).map(toOpenBatch),
    recent: sent.recent,
    tokensPerSecond: sent.tokens_per_s ?? (perWorker.length > 0 ? sum(perWorker) : undefined),
    backendTokens: Object.fromEntries(ofBackends),
    hints: toHints(status, fallback.policy),
  };
}

async function readOpenBatches(client: Client, waiting: { readonly signal?: AbortSignal }): Promise<BatchView[]> {
  const found: BatchView[] = [];
  for await (const one of client.batches.list({ state: 'open', ...waiting })) found.push(one);
  return found;
}

function toOpenBatch({ id, target, groups, informative_share, scenario }: BatchView): OpenBatch {
  return { id, target, delivered: groups.delivered, open_groups: groups.open, informative_share, scenario };
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
