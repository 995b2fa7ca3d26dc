// Submits and collects at once: results arrive while later pieces are still being submitted, so the input may be larger than the
// service's queue. Cancelling is exact: rollouts that were never sent are dropped, and those that may have arrived are cancelled.

import { type CancelOutcome, isTerminal, RolloutError, type RolloutId, type RolloutView } from '@millrace/protocol';
import { followResults, isNotFound, type RolloutReader } from './results.ts';
import { type IdentifiedSubmission, submitAll } from './submit.ts';
import type { CallOptions } from './transport.ts';

export interface Run extends AsyncIterable<RolloutView> {
  readonly ids: readonly RolloutId[];
  /** How many the service has accepted so far. */
  readonly accepted: number;
  /** Stops submitting, cancels what has not ended, and returns how many it cancelled. The iteration still yields their ends. */
  cancel(): Promise<number>;
}

export interface Canceller extends RolloutReader {
  cancel(id: RolloutId): Promise<CancelOutcome>;
}

const cancelsAtOnce = 16;

export function runAll(
  client: Canceller,
  submissions: readonly IdentifiedSubmission[],
  options: CallOptions & { readonly after: number },
): Run {
  const ids = submissions.map((one) => one.id);
  const stop = new AbortController();
  const ended = new Set<RolloutId>();
  const arrived = new Set<RolloutId>();
  let sent = 0;
  let refusal: RolloutError | undefined;
  const results = followResults(client, ids, { ...options, mayBeMissing: (id) => !arrived.has(id) });

  async function submit(): Promise<void> {
    const onSend = (piece: readonly RolloutId[]) => {
      sent = arrived.size + piece.length;
    };
    const onAccept = (piece: readonly { id: RolloutId; state: RolloutView['state'] }[]) => {
      for (const { id } of piece) arrived.add(id);
      results.check(piece.filter((one) => isTerminal(one.state)).map((one) => one.id));
    };
    const signal = options.signal === undefined ? stop.signal : AbortSignal.any([stop.signal, options.signal]);
    await submitAll(client.transport, submissions, { signal, onSend, onAccept });
  }

  const submitting = submit().catch((error: unknown) => {
    if (stop.signal.aborted) return;
    if (!(error instanceof RolloutError) || error.blame !== 'caller') return results.fail(error);
    // What was accepted before goes on, and its results are worth as much as without the refusal.
    refusal = error;
    sent = arrived.size;
    results.forget(ids.slice(sent));
  });

  async function cancel(): Promise<number> {
    stop.abort();
    await submitting;
    results.forget(ids.slice(sent));
    const left = ids.slice(0, sent).filter((id) => !ended.has(id));
    const outcomes = await cancelAll(client, left);
    // The service remembers an id that was cancelled before it arrived, but there is no rollout, and no event reports its end.
    const unsure = left.filter((id, index) => outcomes[index] === 'cancelled' && !arrived.has(id));
    for (const id of unsure) if (!(await isKnown(client, id))) results.forget([id]);
    return outcomes.filter((outcome) => outcome !== 'ended').length;
  }

  return {
    ids,
    get accepted() {
      return arrived.size;
    },
    cancel,
    async *[Symbol.asyncIterator]() {
      for await (const view of results) {
        ended.add(view.id);
        yield view;
      }
      if (refusal !== undefined) throw refusal;
    },
  };
}

async function cancelAll(client: Canceller, ids: readonly RolloutId[]): Promise<CancelOutcome[]> {
  const outcomes: CancelOutcome[] = [];
  let next = 0;
  const work = async () => {
    for (let index = next++; index < ids.length; index = next++) {
      const id = ids[index];
      if (id !== undefined) outcomes[index] = await client.cancel(id);
    }
  };
  await Promise.all(Array.from({ length: cancelsAtOnce }, work));
  return outcomes;
}

async function isKnown(client: Canceller, id: RolloutId): Promise<boolean> {
  try {
    await client.get(id);
    return true;
  } catch (error) {
    if (isNotFound(error)) return false;
    throw error;
  }
}
