// The load of each backend in PostgreSQL: read from totals that triggers keep, so that it costs the same however many rollouts run. In a
// transaction that places several rollouts, those before count too.

import type { BackendLoad } from '../../backends/placements.ts';
import { type LoadRow, noteErrors, toLoad } from '../../rows/operations/placements.ts';
import type { TrafficNotes } from '../../store.ts';
import type { Transaction } from '../../transaction.ts';

export async function readKeptLoads(transaction: Transaction): Promise<BackendLoad[]> {
  return (await transaction.all<LoadRow>('SELECT id, in_flight, tokens FROM backend_loads ORDER BY id')).map(toLoad);
}

const grown = `UPDATE rollouts SET context_tokens = notes.tokens FROM json_to_recordset(CAST(? AS json))
    AS notes (id text COLLATE "C", worker text COLLATE "C", attempt bigint, tokens bigint)
  WHERE rollouts.id = notes.id AND rollouts.worker = notes.worker AND rollouts.attempt = notes.attempt`;

/** All contexts in one statement. */
export async function noteTrafficTogether(transaction: Transaction, { contexts, errors }: TrafficNotes): Promise<void> {
  const notes = contexts.map(({ claim: { id, worker, attempt }, tokens }) => ({ id, worker, attempt, tokens }));
  if (notes.length > 0) await transaction.run(grown, JSON.stringify(notes));
  await noteErrors(transaction, errors);
}
