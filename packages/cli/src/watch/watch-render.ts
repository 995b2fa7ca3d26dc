// One frame of the live view, as lines that fit the terminal. Pure: the same model and size give the same frame.

import type { ServiceStatus } from '@millrace/protocol';
import { clip, openPaint } from '../terminal/text.ts';
import { renderMachines } from './machine-table.ts';
import type { WatchModel } from './watch-model.ts';
import { type FrameStyle, renderEvents, renderStages, renderSummary, renderTitle } from './watch-overview.ts';
import { renderBackends, renderBatches, renderWorkers } from './watch-tables.ts';

interface FrameOptions {
  readonly columns: number;
  readonly rows: number;
  readonly color: boolean;
  /** Milliseconds since the epoch, for the age of errors. */
  readonly dateMs: number;
}

/** At most `rows` lines of at most `columns`. */
export function renderWatch(model: WatchModel, options: FrameOptions): string[] {
  const style = { columns: options.columns, paint: openPaint(options.color), dateMs: options.dateMs };
  return renderFrame(model, style, options.rows)
    .slice(0, options.rows)
    .map((line) => clip(line, options.columns));
}

function renderFrame(model: WatchModel, style: FrameStyle, rows: number): string[] {
  const title = renderTitle(model, style);
  const { status } = model;
  if (status === undefined) return [...title, '', style.paint('dim', 'Waiting for the first answer.')];
  const top = [...title, '', ...renderSummary(model, status, style), '', ...renderStages(status, style)];
  const tables = [renderBatches(status, style), renderBackends(status, style), ...renderPlaces(status, style)];
  const room = shareRows(
    tables.map((lines) => (lines.length === 0 ? 0 : lines.length + 1)),
    rows - top.length,
  );
  const shown = tables.flatMap((lines, index) => fitSection(lines, room[index] ?? 0));
  return [...top, ...shown, ...renderEvents(model.events, { ...style, rows: rows - top.length - shown.length })];
}

/** Of several machines, the machines come first; a single one shows by its workers. */
function renderPlaces(status: ServiceStatus, style: FrameStyle): string[][] {
  const { machines = [] } = status;
  const workers = renderWorkers(status, style);
  return machines.length > 1 ? [renderMachines(machines, { ...style, indent: 2 }), workers] : [workers];
}

/** An empty line, a heading and one row: less than that is not worth showing. */
const leastRows = 3;

/** Every section gets its least before any gets more; the first sections come first. */
function shareRows(needs: readonly number[], rows: number): number[] {
  let left = rows;
  const take = (count: number) => {
    const taken = Math.max(0, Math.min(count, left));
    left -= taken;
    return taken;
  };
  const least = needs.map((need) => (left >= leastRows ? take(Math.min(need, leastRows)) : 0));
  return least.map((given, index) => given + (given === 0 ? 0 : take((needs[index] ?? 0) - given)));
}

function fitSection(lines: readonly string[], room: number): string[] {
  if (room < leastRows || lines.length === 0) return [];
  if (lines.length < room || room === leastRows) return ['', ...lines.slice(0, room - 1)];
  const kept = lines.slice(0, room - 2);
  return ['', ...kept, `  and ${lines.length - kept.length} more lines`];
}
