// The progress of a submission as one line: counts, rate and the time that is left.

import type { Io } from './io.ts';
import { type LiveLine, openLiveLine } from './live-line.ts';
import { bar, cut, openPaint, type Paint, toCount, toDuration, toRate, wantsColor, width } from './text.ts';

export interface SubmitProgress {
  readonly total: number;
  readonly accepted: number;
  readonly done: number;
  readonly failed: number;
  readonly cancelled: number;
  readonly elapsedMs: number;
  /** Rollouts ended per second, lately; undefined while none has. */
  readonly perSecond: number | undefined;
  /** How the calls of the service get on: tokens per second, the oldest call, the last token. */
  readonly calls?: readonly string[];
}

export function renderProgress(progress: SubmitProgress, options: { readonly columns: number; readonly paint: Paint }): string {
  const { paint } = options;
  const right = ` ${toCounts(progress, paint)}`;
  const room = options.columns - width(right) - 1;
  if (room < 10) return cut(toCounts(progress, openPaint(false)), options.columns - 1);
  const columns = Math.min(40, room - 2);
  const filled = bar(ended(progress) / progress.total, columns).trimEnd();
  return `▕${paint('green', filled)}${paint('dim', '·'.repeat(columns - width(filled)))}▏${right}`;
}

export function renderPlainProgress(progress: SubmitProgress): string {
  return `${toCounts(progress, openPaint(false))}  after ${toDuration(progress.elapsedMs)}`;
}

export function renderSummary(progress: SubmitProgress, rewards: { readonly sum: number; readonly count: number }): string {
  const { done, failed, cancelled } = progress;
  const perSecond = progress.elapsedMs > 0 ? (1000 * ended(progress)) / progress.elapsedMs : 0;
  const mean = rewards.count === 0 ? '' : `; mean reward ${(rewards.sum / rewards.count).toFixed(3)} of ${toCount(rewards.count)}`;
  const counts = `${toCount(done)} done, ${toCount(failed)} failed, ${toCount(cancelled)} cancelled`;
  return `${toCount(ended(progress))} rollouts in ${toDuration(progress.elapsedMs)} (${toRate(perSecond)}/s): ${counts}${mean}`;
}

function toCounts(progress: SubmitProgress, paint: Paint): string {
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
    ...(progress.calls ?? []).map((text) => paint('dim', text)),
  ].join('  ');
}

export function ended(progress: Pick<SubmitProgress, 'done' | 'failed' | 'cancelled'>): number {
  return progress.done + progress.failed + progress.cancelled;
}

/** The progress of a submission on standard error, with what is in the way above it. */
export function openProgress(io: Io, read: () => SubmitProgress, hints: () => readonly string[] = () => []): LiveLine {
  const paint = openPaint(wantsColor(io.stderr, io.env));
  return openLiveLine(io, {
    render: (columns) => renderProgress(read(), { columns, paint }),
    renderPlain: () => renderPlainProgress(read()),
    hints,
  });
}
