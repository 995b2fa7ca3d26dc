// Which calls of workers run in sets: those that wait at the same moment, each kind as one statement, in one message. What a set leaves
// without a reply needs more than the usual case.

import { defaultRouting } from '../../backends/routing.ts';
import type { Writes } from '../../rows/operations.ts';
import type { Session } from '../engine/session.ts';

const setCalls = ['renew', 'reportGate', 'move', 'place'] as const;
type SetCall = (typeof setCalls)[number];
type RequestOf<Name extends keyof Writes> = Parameters<Writes[Name]>[1];

interface NamedCall {
  readonly name: string;
  readonly request: unknown;
}

/** What a call writes: a set has at most one call for each. Absent for a call that never runs in a set. */
export function findSetKey({ name, request }: NamedCall): string | undefined {
  const kind = setCalls.find((one) => one === name);
  return kind && subjects[kind](request as never);
}

const subjects: { readonly [Name in SetCall]: (request: RequestOf<Name>) => string } = {
  renew: ({ worker }) => `renew ${worker}`,
  reportGate: ({ worker }) => `gate ${worker}`,
  move: ({ claim }) => `rollout ${claim.id}`,
  place: ({ claim }) => `rollout ${claim.id}`,
};

const rows: { readonly [Name in SetCall]: (request: RequestOf<Name>) => Record<string, unknown> } = {
  renew: ({ worker, leaseMs, report, held }) => ({
    worker,
    lease: leaseMs,
    report: JSON.stringify(report),
    held: held?.claims.map(({ id, attempt }) => [id, attempt]),
  }),
  reportGate: ({ worker, pause, generating }) => ({ worker, pause, generating }),
  move: ({ claim: { id, worker, attempt }, to, isRepeated }) => ({ id, worker, attempt, state: to, again: isRepeated }),
  place: ({
    claim: { id, worker, attempt },
    isRepeated,
    options: { exclude = [], isSticky = false, tokens, routing = defaultRouting },
  }) => ({
    ...{ id, worker, attempt, exclude, tokens, sticky: isSticky, again: isRepeated },
    ...{ affinity: routing.affinityBound, spill_factor: routing.spillFactor, spill_rollouts: routing.spillRollouts },
  }),
};

interface SetOptions {
  readonly channel: string;
  /** The caller's time; that of the database if absent. */
  readonly nowMs: number | undefined;
  /** The same calls may have been committed before. */
  readonly isRepeated: boolean;
}

const sql = 'SELECT i, reply FROM run_worker_calls($1, $2, $3, $4)';

/** The value of each call, by its index; absent for one that has to run alone. */
export async function runSet(session: Session, calls: readonly NamedCall[], options: SetOptions): Promise<Map<number, unknown>> {
  const { channel, nowMs, isRepeated } = options;
  const rowsOf = (kind: SetCall) =>
    calls.flatMap(({ name, request }, i) => (name === kind ? [{ i, ...rows[kind](request as never) }] : []));
  const kinds = Object.fromEntries(setCalls.map((kind) => [kind, rowsOf(kind)] as const).filter(([, all]) => all.length > 0));
  // A character that PostgreSQL's text cannot hold is replaced, as in every other statement.
  const text = JSON.stringify(kinds).replaceAll('\\u0000', '\\ufffd');
  const replies = await session.query<{ i: number; reply: unknown }>(sql, [text, nowMs ?? null, channel, isRepeated]);
  return new Map(replies.map(({ i, reply }) => [i, reply ?? undefined]));
}
