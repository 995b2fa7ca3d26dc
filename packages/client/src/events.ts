// The event log as an endless iterator. After a break it resumes where it stopped, and yields no event twice.

import { definedOf, type Event, event, RolloutError, routes, tryJson } from '@millrace/protocol';
import { readMessages } from './sse.ts';
import { type CallOptions, pause, type Transport } from './transport.ts';

export interface EventsOptions extends CallOptions {
  /** Events after this id. */
  readonly after: number;
  /** Called when the stream is open again after a break. */
  readonly onResume?: () => void;
  /** Goes on with the oldest event, and calls `onResume`, when events that were not read are no longer kept; otherwise this throws `gone`. */
  readonly skipsGone?: boolean;
}

export async function* readEvents(transport: Transport, options: EventsOptions): AsyncGenerator<Event> {
  const { signal } = options;
  let last = options.after;
  let downSince: number | undefined;
  for (;;) {
    try {
      const stream = await openStream(transport, last, signal);
      if (downSince !== undefined) options.onResume?.();
      downSince = undefined;
      for await (const one of stream) {
        if (one.id <= last) continue;
        last = one.id;
        yield one;
      }
    } catch (error) {
      signal?.throwIfAborted();
      const oldest = options.skipsGone ? oldestOf(error) : undefined;
      if (oldest !== undefined) {
        last = oldest - 1;
        downSince ??= performance.now();
        continue;
      }
      if (downSince !== undefined && performance.now() - downSince > transport.timeoutMs) throw error;
      if (!transport.mayRecover(error)) throw error;
    }
    downSince ??= performance.now();
    await pause(200, signal);
  }
}

/** The oldest event that is kept, if the error says that others are gone. */
function oldestOf(error: unknown): number | undefined {
  const oldest = error instanceof RolloutError && error.code === 'gone' ? error.details?.oldest : undefined;
  return typeof oldest === 'number' ? oldest : undefined;
}

async function openStream(transport: Transport, after: number, signal: AbortSignal | undefined): Promise<AsyncIterable<Event>> {
  const bytes = await transport.stream({
    method: 'GET',
    path: routes.readEvents.path,
    query: { after },
    headers: { accept: 'text/event-stream', 'last-event-id': String(after) },
    ...definedOf({ signal }),
  });
  return parseEvents(bytes);
}

/** Skips an event of a kind that this client does not know: it comes from a newer service. */
async function* parseEvents(bytes: AsyncIterable<Buffer>): AsyncGenerator<Event> {
  for await (const { data } of readMessages(bytes)) {
    const parsed = event.safeParse(tryJson(data));
    if (parsed.success) yield parsed.data;
  }
}
