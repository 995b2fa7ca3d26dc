// Parses a task with the schema of its scenario. A null is an absent field wherever the schema has no null there: tables of tasks with
// different fields (Arrow, Parquet, pandas) fill the gaps with nulls.

import type { SchemaResult } from '@millrace/protocol';
import type { Scenario } from './scenario.ts';

/** As it is, if the schema takes it so; otherwise without the nulls in its objects. A null in a list keeps its place. */
export async function safeParseTask(scenario: Pick<Scenario, 'task'>, data: unknown): Promise<SchemaResult<unknown>> {
  const parsed = await scenario.task.safeParseAsync(data);
  if (parsed.success) return parsed;
  const bare = withoutNulls(data);
  return bare === data ? parsed : await scenario.task.safeParseAsync(bare);
}

/** The same value if there is nothing to leave out. */
function withoutNulls(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) {
    const items = value.map(withoutNulls);
    return items.every((item, index) => item === value[index]) ? value : items;
  }
  const entries = Object.entries(value);
  const kept = entries.filter(([, held]) => held !== null).map(([key, held]) => [key, withoutNulls(held)] as const);
  const isSame = kept.length === entries.length && kept.every(([, held], index) => held === entries[index]?.[1]);
  return isSame ? value : Object.fromEntries(kept);
}
