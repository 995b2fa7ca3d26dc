// The progress of a submission: counts, rate and what is left, as one line. Rendering is pure; drawing redraws in place on a
// terminal at most ten times a second, and elsewhere says a plain line every few seconds.

import type { Io } from '../command/command.ts';
import { bar, cut, openPaint, type Paint, toCount, toDuration, toRate, wantsColor, width } from './text.ts';

export interface Progress {
  readonly total: number;
  readonly accepted: number;
  readonly done: number;
  readonly failed: number;
  readonly cancelled: number;
  readonly elapsedMs: number;
  /** Ends in the last seconds; undefined until there is something to go by. */
  readonly perSecond: number | undefined;
}

export function renderProgress(progress: Progress, options: { readonly columns: number; readonly paint: Paint }): string {
  const { paint } = options;
  const right = ` ${toCounts(progress, paint)}`;
  const room = options.columns - width(right) - 1;
  if (room < 10) return cut(toCounts(progress, openPaint(false)), options.columns - 1);
  const columns = Math.min(40, room - 2);
  const filled = bar(ended(progress) / progress.total, columns).trimEnd();
  return `▕${paint('green', filled)}${paint('dim', '·'.repeat(columns - width(filled)))}▏${right}`;
}

export function renderPlainProgress(progress: Progress): string {
  return `${toCounts(progress, openPaint(false))}  after ${toDuration(progress.elapsedMs)}`;
}

export function renderSummary(progress: Progress, rewards: { readonly sum: number; readonly count: number }): string {
  const { done, failed, cancelled } = progress;
  const perSecond = progress.elapsedMs > 0 ? (1000 * ended(progress)) / progress.elapsedMs : 0;
  const mean = rewards.count === 0 ? '' : `; mean reward ${(rewards.sum / rewards.count).toFixed(3)} of ${toCount(rewards.count)}`;
  const counts = `${toCount(done)} done, ${toCount(failed)} failed, ${toCount(cancelled)} cancelled`;
  return `${toCount(ended(progress))} rollouts in ${toDuration(progress.elapsedMs)} (${toRate(perSecond)}/s): ${counts}${mean}`;
}

function toCounts(progress: Progress, paint: Paint): string {
  const { total, accepted, failed, cancelled } = progress;
  const share = total === 0 ? 1 : ended(progress) / total;
  const left = progress.perSecond ? ((total - ended(progress)) / progress.perSecond) * 1000 : undefined;
  return [
    `${toCount(ended(progress)).padStart(toCount(total).length)}/${toCount(total)}`,
    `${Math.floor(share * 100)}%`.padStart(4),
    `${progress.perSecond === undefined ? '-' : toRate(progress.perSecond)}/s`,
    left === undefined ? 'ETA -' : `ETA ${toDuration(left)}`,
    ...(accepted < total ? [paint('dim', `${toCount(accepted)} accepted`)] : []),
    ...(failed > 0 ? [paint('red', `${toCount(failed)} failed`)] : []),
    ...(cancelled > 0 ? [paint('yellow', `${toCount(cancelled)} cancelled`)] : []),
  ].join('  ');
}

export function ended(progress: Pick<Progress, 'done' | 'failed' | 'cancelled'>): number {
  return progress.done + progress.failed + progress.cancelled;
}

export interface ProgressView {
  /** Draws soon; cheap to call often. */
  update(): void;
  /** A line of its own, above the bar. */
  say(text: string): void;
  /** Takes the bar away. */
  close(): void;
}

const redrawMs = 100;
const plainMs = 5000;

export function openProgress(io: Io, read: () => Progress): ProgressView {
  const { stderr } = io;
  const onTerminal = stderr.isTTY === true;
  const paint = openPaint(wantsColor(stderr, io.env));
  let dirty = true;
  let shown = '';
  const draw = () => {
    if (!onTerminal) return void stderr.write(`${renderPlainProgress(read())}\n`);
    const line = renderProgress(read(), { columns: stderr.columns ?? 80, paint });
    if (line !== shown) stderr.write(`\r${line}\x1b[K`);
    shown = line;
  };
  const wipe = () => {
    if (shown !== '') stderr.write('\r\x1b[K');
    shown = '';
  };
  let ticks = 0;
  const timer = setInterval(
    () => {
      ticks += 1;
      // Also without news the estimate moves on, once a second.
      if (!onTerminal || dirty || ticks % 10 === 0) draw();
      dirty = false;
    },
    onTerminal ? redrawMs : plainMs,
  );
  // Also where a broken pipe ends the process at once.
  process.once('exit', wipe);
  if (onTerminal) draw();
  return {
    update() {
      dirty = true;
    },
    say(text) {
      wipe();
      stderr.write(`${text}\n`);
      if (onTerminal) draw();
    },
    close() {
      clearInterval(timer);
      process.off('exit', wipe);
      wipe();
    },
  };
}
