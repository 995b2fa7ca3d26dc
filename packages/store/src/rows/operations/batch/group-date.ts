// One date per group: the chat templates of siblings write the same one, however much later a sibling or a retry comes. It is written into
// the submission, where it stays.

import type { GroupId } from '@millrace/protocol';
import type { Transaction } from '../../../transaction.ts';

interface Undated {
  readonly group?: GroupId;
  readonly date?: string;
  /** The submission as JSON, without its task. */
  readonly body: string;
}

/** The bodies, each with a date: its own, that of its group, or now. */
export async function addDates(transaction: Transaction, rollouts: readonly Undated[]): Promise<string[]> {
  const undated = rollouts.filter(({ date }) => date === undefined);
  const groups = [...new Set(undated.flatMap(({ group }) => (group === undefined ? [] : [group])))];
  const dates = await readDates(transaction, groups);
  for (const { group, date } of rollouts) if (group !== undefined && date !== undefined && !dates.has(group)) dates.set(group, date);
  const now = new Date(transaction.nowMs).toISOString();
  return rollouts.map(({ group, date, body }) => {
    if (date !== undefined) return body;
    const found = (group === undefined ? undefined : dates.get(group)) ?? now;
    return `{"date":${JSON.stringify(found)},${body.slice(1)}`;
  });
}

interface EldestRow {
  readonly group_id: GroupId;
  readonly seq: number;
  readonly created_at: number;
}

/** That of the first sibling in the store; one without a date was created by an older version. */
async function readDates(transaction: Transaction, groups: readonly GroupId[]): Promise<Map<GroupId, string>> {
  const eldest = new Map((await readEldest(transaction, groups)).map((row) => [row.seq, row]));
  const bodies = await transaction.allOf<{ seq: number; body: string }>('SELECT seq, body FROM submissions WHERE seq = ?', [
    ...eldest.keys(),
  ]);
  const dates = new Map<GroupId, string>();
  for (const { seq, body } of bodies) {
    const row = eldest.get(seq);
    if (row) dates.set(row.group_id, JSON.parse(body).date ?? new Date(row.created_at).toISOString());
  }
  return dates;
}

/** Many groups at once are new ones, as a rule; a few may have any number of siblings, of which only the first is read. */
const fewGroups = 32;

async function readEldest(transaction: Transaction, groups: readonly GroupId[]): Promise<EldestRow[]> {
  const siblings = 'SELECT group_id, seq, created_at FROM rollouts WHERE group_id = ?';
  if (groups.length > fewGroups) {
    const rows = await transaction.allOf<EldestRow>(siblings, groups);
    return [...Map.groupBy(rows, ({ group_id }) => group_id).values()].map((all) => all.reduce((a, b) => (a.seq < b.seq ? a : b)));
  }
  const rows: EldestRow[] = [];
  for (const group of groups) {
    const row = await transaction.one<EldestRow>(`${siblings} ORDER BY seq LIMIT 1`, group);
    if (row) rows.push(row);
  }
  return rows;
}
