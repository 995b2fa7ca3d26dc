// Holds one delivery in the store while it is sent, so that no other server sends it. A server that dies stops extending the hold, and
// another one takes the delivery over when it ends.

import type { Clock } from '@millrace/base/clock';
import type { Log } from '@millrace/base/log';
import { definedOf, messageOf } from '@millrace/protocol';
import type { Store, WebhookDue } from '@millrace/store';

interface HoldDeps {
  readonly store: Pick<Store, 'holdWebhook'>;
  readonly clock: Clock;
  readonly log: Log;
}

interface HeldDelivery extends AsyncDisposable {
  /** Aborted when another server took the delivery over, because this one was stopped or cut off for too long. */
  readonly lost: AbortSignal;
}

const leaseMs = 10_000;

/** Absent if another server holds the delivery, or has made it. Closing ends the hold. */
export async function holdDelivery(due: WebhookDue, { store, clock, log }: HoldDeps): Promise<HeldDelivery | undefined> {
  const { batch, seq } = due;
  const lost = new AbortController();
  let heldUntilMs = await store.holdWebhook({ batch, seq, leaseMs });
  if (heldUntilMs === undefined) return undefined;
  let extending: Promise<void> = Promise.resolve();
  let stopTimer = clock.after(leaseMs / 3, extend);

  function extend(): void {
    extending = hold(leaseMs)
      .catch((error) => log.error('webhook-save-failed', { batch, seq, error: messageOf(error), retry_ms: leaseMs / 3 }))
      .finally(() => {
        if (heldUntilMs === undefined) lost.abort();
        else stopTimer = clock.after(leaseMs / 3, extend);
      });
  }
  async function hold(ms: number): Promise<void> {
    heldUntilMs = await store.holdWebhook({ batch, seq, leaseMs: ms, ...definedOf({ heldUntilMs }) });
  }
  return {
    lost: lost.signal,
    async [Symbol.asyncDispose]() {
      stopTimer();
      await extending;
      stopTimer();
      // What was sent, or postponed after a failure, is no longer held, and this changes nothing.
      if (heldUntilMs !== undefined) await hold(0).catch(() => {}); // the hold ends by itself
    },
  };
}
