// The table of metrics in docs/traces.md, made from the metrics themselves.

import { openMetrics } from './metrics.ts';

export function renderMetrics(): string {
  const rows = openMetrics()
    .describe()
    .toSorted((one, other) => (one.name < other.name ? -1 : 1));
  const lines = rows.map(({ name, help, isOwn }) => `| \`${name}\` | ${help}${isOwn ? ' Of each server.' : ''} |`);
  return ['| metric | is |', '|---|---|', ...lines].join('\n');
}
