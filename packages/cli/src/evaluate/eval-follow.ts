// Follows an evaluation to its end, with a live line of progress and the numbers so far. A service that goes away and comes back is
// waited for.

import type { Client } from '@millrace/client';
import type { EvaluationView } from '@millrace/protocol';
import type { Io } from '../terminal/io.ts';
import { openLiveLine } from '../terminal/live-line.ts';
import { openPaint, wantsColor } from '../terminal/text.ts';
import { renderEvaluationLine } from './eval-render.ts';

const firstPollMs = 100;
const pollMs = 1000;

/** The evaluation when it has ended, or as it was when Ctrl-C was pressed. */
export async function followEvaluation(client: Client, begun: EvaluationView, io: Io): Promise<EvaluationView> {
  if (begun.state !== 'open') return begun;
  let evaluation = begun;
  let hints: readonly string[] = [];
  const startedAt = performance.now();
  const perSecond = () => (1000 * (evaluation.samples.ended - begun.samples.ended)) / (performance.now() - startedAt);
  const line = openLiveLine(io, {
    render: (columns) =>
      renderEvaluationLine(evaluation, { columns, paint: openPaint(wantsColor(io.stderr, io.env)), perSecond: perSecond() }),
    renderPlain: () => renderEvaluationLine(evaluation, { columns: 120, paint: openPaint(false), perSecond: perSecond() }),
    hints: () => hints,
  });
  const stop = new AbortController();
  const release = io.onInterrupt(() => stop.abort());
  try {
    for (let waitMs = firstPollMs; evaluation.state === 'open' && !stop.signal.aborted; waitMs = Math.min(pollMs, 2 * waitMs)) {
      await line.pause(waitMs, stop.signal);
      const { signal } = stop;
      [evaluation, { hints }] = await Promise.all([client.evaluations.get(begun.id, { signal }), client.status({ signal })]);
      line.update();
    }
  } catch (error) {
    if (!stop.signal.aborted) throw error;
  } finally {
    release();
    line.close();
  }
  return evaluation;
}
