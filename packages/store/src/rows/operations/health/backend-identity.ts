// Which server answers at a backend's address. All workers report what they find; here it is decided, for all of them, whether that is
// another server than the one known, and then nothing is assumed of it: not its cache, not its flags, not its weights.

import type { BackendProbe, ServerFacts } from '@millrace/engines';
import type { BackendId } from '@millrace/protocol';
import { definedOf } from '@millrace/protocol/plain';
import { findChange, findFault, type IdentityChange, joinProbe } from '../../../backends/identity.ts';
import type { Transaction } from '../../../transaction.ts';
import { breakBackend, recoverBackend } from './backend-health.ts';

interface ProbeRow {
  readonly probe: string | null;
  readonly policy_version: number;
}

interface ProbeNote {
  readonly id: BackendId;
  readonly probe: BackendProbe;
}

/** Returns what is known now; undefined if the backend has left. A whole probe is judged; a call only adds what it found. */
export async function noteProbe(transaction: Transaction, { id, probe }: ProbeNote): Promise<BackendProbe | undefined> {
  const row = await readProbe(transaction, id);
  if (!row) return undefined;
  const known = row.probe === null ? undefined : (JSON.parse(row.probe) as BackendProbe);
  const { policy_version: version } = row;
  // A worker that has not read the newest resume says nothing about its version.
  if (probe.provenVersion !== undefined && probe.provenVersion !== version) return known ?? {};
  if (probe.atMs === undefined) return await writeProbe(transaction, id, { ...known, ...probe });
  const { probe: joined, change } = joinProbe(known, probe);
  const isFirst = known?.generation === undefined;
  if (!change)
    return await judgeProbe(transaction, id, { ...joined, ...(isFirst ? { startVersion: version } : {}), provenVersion: version });
  const isUnknown = known?.hasUnknownWeights === true || !hasKnownWeights(known, change, version);
  const { startVersion: _, ...rest } = joined;
  const isStart = !isUnknown && known?.provenVersion === version;
  const next = { ...rest, provenVersion: version, ...(isStart ? { startVersion: version } : {}), hasUnknownWeights: isUnknown };
  await noteChange(transaction, id, { ...change, generation: next.generation ?? 1, isUnknown });
  return await judgeProbe(transaction, id, next);
}

/** What forbids to sample from the server breaks it for all. */
async function judgeProbe(transaction: Transaction, id: BackendId, probe: BackendProbe): Promise<BackendProbe> {
  const error = findFault(probe);
  if (error !== undefined) await breakBackend(transaction, { id, error });
  return await writeProbe(transaction, id, probe);
}

/**
 * A server starts with the weights that it joined with. After a resume that named a version for all backends, and before the server was
 * seen again, the version is that of whatever answers now.
 */
function hasKnownWeights(known: BackendProbe | undefined, { to }: IdentityChange, version: number): boolean {
  if (known?.provenVersion !== version) return true;
  return known.startVersion === version && to.model === undefined && to.root === undefined;
}

async function noteChange(
  transaction: Transaction,
  id: BackendId,
  { from, to, generation, isUnknown }: IdentityChange & { readonly generation: number; readonly isUnknown: boolean },
): Promise<void> {
  const data = { generation, from: toWire(from), to: toWire(to), weights: isUnknown ? 'unknown' : 'known' };
  await transaction.appendEvent({ kind: 'backend-changed', backendId: id, data });
  // Its cache is empty: siblings that ended left nothing there. Only groups that are still sampled matter.
  const open = "SELECT group_id FROM rollouts WHERE state IN ('queued', 'init', 'ready', 'run') AND group_id IS NOT NULL";
  const sql = `UPDATE rollouts SET backend_version = NULL WHERE backend = ? AND state <> 'run' AND group_id IN (${open})`;
  await transaction.run(sql, id);
}

/** What a join found, after what was known of the same backend: the same server keeps its generation. */
export async function toJoinedProbe(
  transaction: Transaction,
  { id, probe }: { readonly id: BackendId; readonly probe: BackendProbe | undefined },
  version: number,
): Promise<BackendProbe | undefined> {
  if (!probe) return undefined;
  const row = await readProbe(transaction, id);
  const known = row?.probe ? (JSON.parse(row.probe) as BackendProbe) : undefined;
  const { generation = 0 } = known ?? {};
  const isSame = known !== undefined && generation > 0 && !findChange(known, probe);
  return { ...probe, generation: generation + Number(!isSame), startVersion: version, provenVersion: version };
}

/** A resume has named the version of all backends. */
export async function stateWeights(transaction: Transaction): Promise<void> {
  const rows = await transaction.all<{ id: BackendId; probe: string }>(
    'SELECT id, probe FROM backends WHERE probe IS NOT NULL ORDER BY id FOR UPDATE',
  );
  for (const { id, probe: text } of rows) {
    const { hasUnknownWeights, ...probe } = JSON.parse(text) as BackendProbe;
    if (!hasUnknownWeights) continue;
    await writeProbe(transaction, id, probe);
    await recoverBackend(transaction, { id });
  }
}

async function readProbe(transaction: Transaction, id: BackendId): Promise<ProbeRow | undefined> {
  return await transaction.one<ProbeRow>('SELECT probe, policy_version FROM backends WHERE id = ? FOR UPDATE', id);
}

async function writeProbe(transaction: Transaction, id: BackendId, probe: BackendProbe): Promise<BackendProbe> {
  await transaction.run('UPDATE backends SET probe = ? WHERE id = ?', JSON.stringify(probe), id);
  return probe;
}

function toWire({ contextTokens, logprobsMode, ...facts }: ServerFacts): Record<string, unknown> {
  return definedOf({ ...facts, context_length: contextTokens, logprobs_mode: logprobsMode });
}
