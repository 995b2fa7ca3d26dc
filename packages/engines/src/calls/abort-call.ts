// Cuts a call through its server: the server is asked to abort the request by its id, and replies to the call with all tokens so far.

import { type Clock, sleep, systemClock } from '@millrace/base/clock';

/** A server answers an abort at once. After this long it is not expected to answer any more, and the connection is closed. */
const abortMs = 5_000;
/** vLLM with several API processes knows a request in only one of them, and each connection may reach another. */
const repeatMs = 250;

interface AbortOptions {
  readonly cut: AbortSignal;
  readonly signal: AbortSignal;
  /** Asks the server to abort the call. False if it has no route for that. */
  ask(options: { readonly signal: AbortSignal }): Promise<boolean>;
  readonly clock?: Clock | undefined;
}

/** Makes the call. The signal that it gets is aborted only if the server does not end the call after it was cut. */
export async function cutByAbort<T>(call: (lost: AbortSignal) => Promise<T>, options: AbortOptions): Promise<T> {
  const { cut, signal, ask, clock = systemClock } = options;
  const lost = new AbortController();
  let ended: AbortController | undefined;
  const abort = () => {
    ended = new AbortController();
    const stop = clock.after(abortMs, () => lost.abort());
    ended.signal.addEventListener('abort', stop, { once: true });
    const until = AbortSignal.any([signal, ended.signal, lost.signal]);
    repeatAsk(ask, { until, clock }).catch(() => lost.abort());
  };
  if (cut.aborted) abort();
  else cut.addEventListener('abort', abort, { once: true });
  try {
    return await call(lost.signal);
  } finally {
    cut.removeEventListener('abort', abort);
    ended?.abort();
  }
}

/** Rejects if the server cannot be asked; returns when the call has ended. */
async function repeatAsk(
  ask: AbortOptions['ask'],
  { until, clock }: { readonly until: AbortSignal; readonly clock: Clock },
): Promise<void> {
  try {
    for (;;) {
      if (!(await ask({ signal: until }))) throw new Error('the server has no route to abort a request');
      await sleep(repeatMs, { clock, signal: until });
    }
  } catch (error) {
    if (!until.aborted) throw error;
  }
}
