// The table of machines: which hosts run workers, what they hold, and those that left or were lost.

import type { MachineView } from '@millrace/protocol';
import { renderTable, type TableOptions, type TableRow } from '../terminal/table.ts';
import { cut, toBytes, toCount, toDuration } from '../terminal/text.ts';

const nameColumns = 24;

/** Empty where there is none. */
export function renderMachines(machines: readonly MachineView[], { columns, paint, indent }: Omit<TableOptions, 'right'>): string[] {
  if (machines.length === 0) return [];
  const rows = machines.map(({ name, state, workers, held, slots, cpus, memory_bytes, heartbeat_age_ms, labels }): TableRow => {
    const isGone = state === 'left' || state === 'lost';
    return {
      cells: [
        cut(name, nameColumns),
        state,
        toCount(workers),
        isGone ? '-' : toCount(held),
        isGone ? '-' : toCount(slots.run),
        toCount(cpus),
        toBytes(memory_bytes),
        toDuration(heartbeat_age_ms),
        Object.entries(labels)
          .map(([key, value]) => `${key}=${value}`)
          .join(' '),
      ],
      colour: state === 'lost' ? 'red' : state === 'left' ? 'dim' : state === 'draining' ? 'yellow' : undefined,
    };
  });
  const heads = ['Machines', 'state', 'workers', 'rollouts', 'slots', 'cpus', 'memory', 'seen', 'labels'];
  return renderTable(heads, rows, { columns, paint, right: [2, 3, 4, 5, 6, 7], ...(indent !== undefined && { indent }) });
}
