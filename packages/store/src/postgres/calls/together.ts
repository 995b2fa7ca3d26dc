// The calls of workers that run as a few statements for all that wait at the same moment, in the transaction that they share.

import type { PostgresTransaction } from '../engine/postgres-transaction.ts';
import { claimTogether } from './claims-together.ts';
import { finishTogether } from './ends-together.ts';
import { appendEventsTogether, appendTurnsTogether, noteAllTraffic } from './turns-together.ts';

/** `outcomes` are in the order of the requests. Those in `alone` need more than the usual case. */
interface TogetherReply {
  readonly values: readonly unknown[];
  /** By index. */
  readonly alone: ReadonlySet<number>;
}

type RunTogether = (transaction: PostgresTransaction, requests: readonly never[]) => Promise<readonly unknown[]>;

interface TogetherCall {
  readonly run: RunTogether;
  /** A reply that is undefined means that the call has to run alone. */
  readonly hasReply: boolean;
  /** Of calls for the same subject, only the first runs with others. */
  readonly subjectOf?: (request: never) => string;
}

const together: Readonly<Record<string, TogetherCall>> = {
  claim: { run: claimTogether, hasReply: true, subjectOf: ({ worker }: { readonly worker: string }) => worker },
  finish: {
    run: finishTogether,
    hasReply: true,
    subjectOf: ({ claim }: { readonly claim: { readonly id: string } }) => claim.id,
  },
  appendEvents: { run: appendEventsTogether, hasReply: false },
  noteTraffic: { run: noteAllTraffic, hasReply: false },
  appendTurns: { run: appendTurnsTogether, hasReply: true, subjectOf: ({ worker }: { readonly worker: string }) => worker },
};

export function isTogetherCall(name: string): boolean {
  return Object.hasOwn(together, name);
}

/** Which of the calls, all of one name, run together: one for each subject. */
export function pickTogether<Call extends { readonly name: string; readonly request: unknown }>(calls: readonly Call[]): Call[] {
  const seen = new Set<string>();
  return calls.filter(({ name, request }) => {
    const subject = together[name]?.subjectOf?.(request as never);
    if (subject === undefined) return true;
    const isFirst = !seen.has(subject);
    seen.add(subject);
    return isFirst;
  });
}

export async function runTogether(transaction: PostgresTransaction, name: string, requests: readonly unknown[]): Promise<TogetherReply> {
  const known = together[name];
  if (!known) return { values: [], alone: new Set(requests.keys()) };
  const values = await known.run(transaction, requests as readonly never[]);
  const alone = known.hasReply ? [...requests.keys()].filter((index) => values[index] === undefined) : [];
  return { values, alone: new Set(alone) };
}
