// Asks the service, while a submission waits for it, what is in the way (no worker, no backend, a paused policy, no answer), and how its
// calls get on.

import { openClient } from '@millrace/client';
import { RolloutError } from '@millrace/protocol';
import { toProgressText } from '../service/call-progress.ts';
import { toDuration } from '../terminal/text.ts';

interface HintMonitor extends AsyncDisposable {
  hints(): readonly string[];
  /** How the calls of the service get on. */
  calls(): readonly string[];
  /** Calls the listener when the hints have changed. */
  onChange(listener: () => void): void;
}

const pollMs = 2000;

export function openHintMonitor(address: { readonly url: string; readonly key?: string }, patienceMs: number): HintMonitor {
  const stop = new AbortController();
  const client = openClient({ ...address, timeoutMs: 1500 });
  let hints: readonly string[] = [];
  let calls: readonly string[] = [];
  let listener = () => {};
  const read = async () => {
    try {
      const status = await client.status({ signal: stop.signal });
      hints = status.hints;
      calls = toProgressText(status.backends);
    } catch (error) {
      // Any other error is one that the submission itself reports.
      if (!(error instanceof RolloutError) || error.code !== 'unreachable') return;
      hints = [`No answer from ${address.url}. Trying again for up to ${toDuration(patienceMs)}.`];
    }
    if (!stop.signal.aborted) listener();
  };
  let reading = read();
  const timer = setInterval(() => {
    reading = reading.then(read);
  }, pollMs);
  return {
    hints: () => hints,
    calls: () => calls,
    onChange(next) {
      listener = next;
    },
    async [Symbol.asyncDispose]() {
      clearInterval(timer);
      stop.abort();
      await client[Symbol.asyncDispose]();
      await reading;
    },
  };
}
