// One frame of the live view, as lines that fit the terminal. Pure: the same model and size give the same frame.

import { blames, type Event, type RolloutState, rolloutStates, type ServiceStatus } from '@millrace/protocol';
import {
  bar,
  type Colour,
  clip,
  cut,
  openPaint,
  type Paint,
  padEnd,
  padStart,
  toBytes,
  toCount,
  toDuration,
  toRate,
  width,
} from '../terminal/text.ts';
import type { WatchModel } from './watch-model.ts';

export interface FrameOptions {
  readonly columns: number;
  readonly rows: number;
  readonly color: boolean;
}

/** At most `rows` lines of at most `columns`. */
export function renderWatch(model: WatchModel, options: FrameOptions): string[] {
  return renderFrame(model, options)
    .slice(0, options.rows)
    .map((line) => clip(line, options.columns));
}

function renderFrame(model: WatchModel, { columns, rows, color }: FrameOptions): string[] {
  const paint = openPaint(color);
  const { status } = model;
  const head = renderTitle(model, columns, paint);
  if (status === undefined) return [...head, '', paint('dim', 'waiting for the first answer')];
  const top = [...head, '', ...renderRollouts(status, columns, paint), renderRates(model, paint), ...renderFailures(model, paint)];
  const stages = ['', ...renderStages(status, columns, paint)];
  // Lists share what is left; a terminal that is too small loses the events first, then workers and backends.
  const left = rows - top.length - stages.length;
  const share = Math.max(3, Math.floor(left / 3));
  const backends = renderList(renderBackends(status, columns, paint), Math.min(share, left));
  const workers = renderList(renderWorkers(status, columns, paint), Math.min(share, left - backends.length));
  const events = renderEvents(model.events, { columns, paint, room: left - backends.length - workers.length - 2 });
  return [...top, ...stages, ...backends, ...workers, ...events];
}

function renderTitle({ url, status, trouble }: WatchModel, columns: number, paint: Paint): string[] {
  const alive = status?.workers.filter((worker) => worker.alive).length ?? 0;
  const facts =
    status === undefined ? '' : `${plural(alive, 'worker')} · lag p99 ${toDuration(status.loop_lag_ms.p99)} · ${toBytes(status.rss_bytes)}`;
  const title = `millrace  ${cut(url, Math.max(10, columns - width(facts) - 12))}`;
  const first = paint('bold', title) + padStart(paint('dim', facts), Math.max(width(facts) + 2, columns - width(title)));
  return trouble === undefined ? [first] : [first, paint('red', cut(trouble, columns))];
}

const stateColours: Partial<Record<RolloutState, Colour>> = { run: 'cyan', done: 'green', failed: 'red', cancelled: 'yellow' };

function renderRollouts(status: ServiceStatus, columns: number, paint: Paint): string[] {
  const cells = rolloutStates.map((state) => {
    const count = status.rollouts[state];
    const text = `${state} ${toCount(count)}`;
    const colour = count === 0 ? 'dim' : stateColours[state];
    return { text, painted: colour === undefined ? text : paint(colour, text) };
  });
  const lines: string[] = [];
  let used = columns;
  for (const { text, painted } of cells) {
    if (used + text.length + 3 > columns) {
      lines.push(label(lines.length === 0 ? 'Rollouts' : '', paint));
      used = labelColumns - 3;
    } else lines.push(`${lines.pop()}   `);
    lines.push(lines.pop() + painted);
    used += text.length + 3;
  }
  return lines;
}

const labelColumns = 11;

function label(name: string, paint: Paint): string {
  return paint('bold', padEnd(name, labelColumns));
}

function renderRates({ rates }: WatchModel, paint: Paint): string {
  const { ended, turns, tokens } = rates;
  return `${label('Rates', paint)}${toRate(ended)} ended/s   ${toRate(turns)} turns/s   ${toRate(tokens)} tokens/s`;
}

function renderFailures({ failures }: WatchModel, paint: Paint): string[] {
  const cells = blames.filter((blame) => failures[blame] !== undefined).map((blame) => `${blame} ${toCount(failures[blame] ?? 0)}`);
  return [`${label('Failures', paint)}${cells.length === 0 ? paint('dim', 'none seen') : paint('red', cells.join('   '))}`];
}

function renderStages(status: ServiceStatus, columns: number, paint: Paint): string[] {
  const reports = status.workers.flatMap((worker) => (worker.alive && worker.report !== null ? [worker.report.stages] : []));
  const names = ['init', 'ready', 'run', 'evaluate'] as const;
  const rows = names.map((name) => {
    const sum = (field: 'active' | 'waiting' | 'slots') => reports.reduce((total, stages) => total + stages[name][field], 0);
    return { name, active: sum('active'), waiting: sum('waiting'), slots: sum('slots') };
  });
  const counts = rows.map(({ active, slots }) => `${toCount(active)}/${toCount(slots)}`);
  const countColumns = Math.max(...counts.map(width));
  const barColumns = Math.max(4, Math.min(40, columns - labelColumns - countColumns - 22));
  return [
    paint('bold', 'Stages'),
    ...rows.map(({ name, active, waiting, slots }, index) => {
      const filled = bar(slots === 0 ? 0 : active / slots, barColumns).trimEnd();
      const rest = paint('dim', '·'.repeat(barColumns - width(filled)));
      const waits = waiting === 0 ? '' : `   ${toCount(waiting)} waiting`;
      return `  ${padEnd(name, labelColumns - 2)}${paint('cyan', filled)}${rest}  ${padStart(counts[index] ?? '', countColumns)}${waits}`;
    }),
  ];
}

interface List {
  readonly title: string;
  readonly lines: readonly string[];
}

function renderList({ title, lines }: List, room: number): string[] {
  if (room < 3) return [];
  const shown = lines.length <= room - 2 ? lines : [...lines.slice(0, room - 3), `  and ${lines.length - (room - 3)} more`];
  return ['', title, ...shown];
}

function renderBackends(status: ServiceStatus, columns: number, paint: Paint): List {
  const rows = status.backends.map((backend) => ({
    cells: [cut(backend.id, 28), backend.state, toCount(backend.in_flight), toCount(backend.policy_version), backend.url],
    colour: backend.state === 'up' ? undefined : ('yellow' as const),
  }));
  const heads = ['Backends', 'state', 'in flight', 'policy', 'address'];
  return renderColumns(heads, rows, { columns, paint, right: [2, 3], none: 'none has joined: rollouts wait in run' });
}

function renderWorkers(status: ServiceStatus, columns: number, paint: Paint): List {
  const rows = status.workers.map(({ id, pid, host, alive, report }) => ({
    cells: [
      cut(id, 28),
      String(pid),
      alive ? 'alive' : 'gone',
      report === null ? '-' : toCount(report.held),
      report === null ? '-' : toDuration(report.loop_lag_ms.p99),
      report === null ? '-' : toBytes(report.rss_bytes),
      host,
    ],
    colour: alive ? undefined : ('dim' as const),
  }));
  const heads = ['Workers', 'pid', 'lease', 'rollouts', 'lag p99', 'memory', 'host'];
  return renderColumns(heads, rows, { columns, paint, right: [1, 3, 4, 5], none: 'none: nothing will be taken up' });
}

interface TableRow {
  readonly cells: readonly string[];
  readonly colour: Colour | undefined;
}

interface TableOptions {
  readonly columns: number;
  readonly paint: Paint;
  /** Columns of numbers, which stand at the right. */
  readonly right: readonly number[];
  readonly none: string;
}

function renderColumns(heads: readonly string[], rows: readonly TableRow[], { columns, paint, right, none }: TableOptions): List {
  if (rows.length === 0) return { title: paint('bold', heads[0] ?? ''), lines: [paint('yellow', `  ${none}`)] };
  // The first column stands two in, under its title.
  const table = rows.map(({ cells }) => cells.map((cell, index) => (index === 0 ? `  ${cell}` : cell)));
  const widths = heads.map((head, index) => Math.max(width(head), ...table.map((cells) => width(cells[index] ?? ''))));
  const join = (cells: readonly string[]) =>
    cut(cells.map((cell, index) => (right.includes(index) ? padStart : padEnd)(cell, widths[index] ?? 0)).join('   '), columns).trimEnd();
  const lines = table.map((cells, index) => {
    const colour = rows[index]?.colour;
    return colour === undefined ? join(cells) : paint(colour, join(cells));
  });
  return { title: paint('bold', join(heads)), lines };
}

function renderEvents(events: readonly Event[], { columns, paint, room }: { columns: number; paint: Paint; room: number }): string[] {
  if (room < 1) return [];
  const lines = events.slice(-room).map((event) => {
    const text = cut(`  ${event.at.slice(11, 19)}  ${padEnd(event.kind, 14)}  ${toDetail(event)}`, columns);
    return event.data.state === 'failed' ? paint('red', text) : text;
  });
  return ['', paint('bold', 'Newest events'), ...(lines.length === 0 ? [paint('dim', '  none yet')] : lines)];
}

function toDetail({ rollout_id, worker_id, backend_id, data }: Event): string {
  const ids = [rollout_id ?? worker_id, backend_id].filter((id) => id !== undefined);
  const facts = Object.entries(data).flatMap(([name, value]) => {
    if (value === null || typeof value === 'object' || name === 'worker') return [];
    return name === 'state' || name === 'reason' ? [String(value)] : [`${name} ${typeof value === 'number' ? toNumber(value) : value}`];
  });
  return [...ids, ...facts].join('  ');
}

function toNumber(value: number): string {
  return value.toLocaleString('en', { maximumFractionDigits: 3 });
}

function plural(count: number, word: string): string {
  return `${toCount(count)} ${word}${count === 1 ? '' : 's'}`;
}
