// What our API returned for a rollout, in the shape in which the tests compare it with what a trainer has: one sequence for each branch.

import type { Client } from '@millrace/client';
import { z } from 'zod';

export const sequence = z.object({
  ids: z.array(z.number()),
  /** 1 where the policy sampled. */
  mask: z.array(z.number()),
  /** 0 where the mask is. */
  logprobs: z.array(z.number()),
});
type Sequence = z.infer<typeof sequence>;

interface RecordedRollout {
  readonly reward: number | undefined;
  readonly failure: string | undefined;
  readonly branches: readonly Sequence[];
}

export async function readLedger(client: Client, id: string): Promise<RecordedRollout> {
  const view = await client.get(id);
  const { segments } = await client.trajectory(id);
  const branches: Sequence[] = [];
  for (const { branch = 0, kind, tokenIds, logprobs } of segments) {
    branches[branch] ??= { ids: [], mask: [], logprobs: [] };
    const { ids, mask, logprobs: all } = branches[branch];
    ids.push(...tokenIds);
    mask.push(...Array.from(tokenIds, () => (kind === 'sampled' ? 1 : 0)));
    all.push(...(kind === 'sampled' ? logprobs : Array.from(tokenIds, () => 0)));
  }
  return { reward: view.reward ?? undefined, failure: view.failure?.code, branches };
}

/** The replies alone: what was sampled in each turn, after which ids. */
export function turnsOf({
  ids,
  mask,
  logprobs,
}: Sequence): { readonly prompt: number[]; readonly completion: number[]; readonly logprobs: number[] }[] {
  const turns: { prompt: number[]; completion: number[]; logprobs: number[] }[] = [];
  mask.forEach((sampled, at) => {
    if (!sampled) return;
    if (!mask[at - 1]) turns.push({ prompt: ids.slice(0, at), completion: [], logprobs: [] });
    turns.at(-1)?.completion.push(ids[at] ?? -1);
    turns.at(-1)?.logprobs.push(logprobs[at] ?? 0);
  });
  return turns;
}
