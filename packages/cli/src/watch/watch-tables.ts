// The lists of the live view: open batches, backends with their last error, and workers. Each is a heading and its rows.

import type { BackendView, ServiceStatus } from '@millrace/protocol';
import { describeBackendState, toBackendState } from '../service/backend-state.ts';
import { progressHeads, toProgressCells } from '../service/call-progress.ts';
import { renderTable, type TableRow } from '../terminal/table.ts';
import { cut, progressBar, toBytes, toCount, toDuration, toVisible } from '../terminal/text.ts';
import type { FrameStyle } from './watch-overview.ts';

const nameColumns = 24;

/** Empty where no batch is open. */
export function renderBatches({ batches }: ServiceStatus, { columns, paint }: FrameStyle): string[] {
  if (batches.length === 0) return [];
  const barColumns = columns >= 100 ? 30 : 16;
  const rows = batches.map(({ id, target, delivered, open_groups, mean_reward, scenario }) => ({
    cells: [
      cut(id, nameColumns),
      progressBar(delivered / target, barColumns),
      `${toCount(delivered)}/${toCount(target)}`,
      mean_reward === null ? '-' : mean_reward.toFixed(3),
      toCount(open_groups),
      scenario,
    ],
  }));
  const heads = ['Batches', 'progress', 'groups', 'reward', 'open', 'scenario'];
  return renderTable(heads, rows, { columns, paint, right: [2, 3, 4], indent: 2 });
}

export function renderBackends({ backends }: ServiceStatus, style: FrameStyle): string[] {
  const { columns, paint } = style;
  if (backends.length === 0) return [paint('bold', 'Backends'), paint('yellow', '  none: rollouts wait in run')];
  const isAnyHeld = backends.some((backend) => backend.held_for_cache > 0);
  const rows = backends.map((backend): TableRow => {
    const { id, url, in_flight, calls, held_for_cache, policy_version } = backend;
    const state = toBackendState(backend);
    return {
      cells: [
        cut(id, nameColumns),
        describeBackendState(backend),
        toCount(in_flight),
        toCount(calls),
        ...(isAnyHeld ? [toCount(held_for_cache)] : []),
        ...toProgressCells(backend),
        toCount(policy_version),
        url,
      ],
      colour: state === 'broken' ? 'red' : state === 'up' ? undefined : 'yellow',
      note: toErrorNote(backend, style.dateMs),
    };
  });
  const heads = ['Backends', 'state', 'rollouts', 'calls', ...(isAnyHeld ? ['held'] : []), ...progressHeads, 'policy', 'address'];
  return renderTable(heads, rows, { columns, paint, right: [2, 3, 4, 5, 6, 7, 8], indent: 2 });
}

const recentMs = 300_000;

/** The last error of a broken backend always; of another one while it is recent. */
function toErrorNote(backend: BackendView, dateMs: number): string | undefined {
  const { last_error } = backend;
  if (last_error === null) return undefined;
  const ageMs = Math.max(0, dateMs - Date.parse(last_error.at));
  if (toBackendState(backend) !== 'broken' && ageMs > recentMs) return undefined;
  return `last error ${toDuration(ageMs)} ago: ${toVisible(last_error.message).replaceAll('\n', ' ')}`;
}

/** Live workers first; the others last and dimmed. */
export function renderWorkers({ workers }: ServiceStatus, { columns, paint }: FrameStyle): string[] {
  if (workers.length === 0) return [paint('bold', 'Workers'), paint('yellow', '  none: nothing starts')];
  const sorted = [...workers].sort((a, b) => Number(b.alive) - Number(a.alive));
  const rows = sorted.map(({ id, pid, host, alive, report }): TableRow => {
    const shown = alive ? report : null;
    return {
      cells: [
        cut(id, nameColumns),
        alive ? 'alive' : 'gone',
        shown === null ? '-' : toCount(shown.held),
        shown === null ? '-' : toCount(shown.turns),
        shown === null ? '-' : toDuration(shown.loop_lag_ms.p99),
        shown === null ? '-' : toBytes(shown.rss_bytes),
        String(pid),
        host,
      ],
      colour: alive ? undefined : 'dim',
    };
  });
  const heads = ['Workers', 'state', 'rollouts', 'turns', 'lag p99', 'memory', 'pid', 'host'];
  return renderTable(heads, rows, { columns, paint, right: [2, 3, 4, 5, 6], indent: 2 });
}
