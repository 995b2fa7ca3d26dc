// Which rollouts of the head of a class go to which claim: first those that were passed over for long, then those whose siblings run on the
// machine that claims, then those whose siblings run nowhere, and of equal ones the oldest. Pure.

import type { GroupId } from '@millrace/protocol';

/** How many rollouts at the head of a class may overtake each other. */
export const windowSize = 64;

export interface HeadRow {
  readonly seq: number;
  readonly group_id: GroupId | null;
  readonly passed_at: number | null;
  /** Where siblings run. */
  readonly hosts: readonly string[] | null;
}

interface PlaceDemand {
  readonly host: string | undefined;
}

interface ChooseOptions<Claimer extends PlaceDemand> {
  /** One place each, in the order in which they are served. */
  readonly demands: readonly Claimer[];
  /** What was passed over since then or earlier goes first. */
  readonly passedAt: number;
}

interface ChosenRows<Claimer> {
  readonly chosen: readonly { readonly seq: number; readonly claimer: Claimer }[];
  /** Those that were overtaken for the first time. */
  readonly passed: readonly number[];
}

/** `head` is in the order of `seq`. */
export function chooseRows<Claimer extends PlaceDemand>(
  head: readonly HeadRow[],
  { demands, passedAt }: ChooseOptions<Claimer>,
): ChosenRows<Claimer> {
  const homes = new Map(head.flatMap(({ group_id: group, hosts }) => (group === null ? [] : [[group, new Set(hosts ?? [])] as const])));
  const left = [...head];
  const chosen: { seq: number; claimer: Claimer }[] = [];
  const rankOf = ({ group_id: group, passed_at: passed }: HeadRow, host: string | undefined): number => {
    const hosts = group === null ? undefined : homes.get(group);
    if (passed !== null && passed <= passedAt) return 0;
    if (host !== undefined && hosts?.has(host)) return 1;
    return hosts === undefined || hosts.size === 0 ? 2 : 3;
  };
  for (const claimer of demands) {
    // Each may choose from a window that begins with the oldest that is left.
    const ranks = left.slice(0, windowSize + 1).map((row) => rankOf(row, claimer.host));
    const at = ranks.indexOf(Math.min(...ranks));
    const [row] = at < 0 ? [] : left.splice(at, 1);
    if (!row) break;
    chosen.push({ seq: row.seq, claimer });
    if (row.group_id !== null && claimer.host !== undefined) homes.get(row.group_id)?.add(claimer.host);
  }
  const newest = Math.max(...chosen.map(({ seq }) => seq));
  return { chosen, passed: left.filter(({ seq, passed_at: passed }) => seq < newest && passed === null).map(({ seq }) => seq) };
}
