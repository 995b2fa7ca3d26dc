// The event log as an iterator without an end: it resumes after a break where it stopped, and gives no event twice.

import { type Event, event, routes } from '@millrace/protocol';
import { readFrames } from './sse.ts';
import { isAway, pause, type Transport, tryJson } from './transport.ts';

export interface EventsOptions {
  /** Events after this id. */
  readonly after: number;
  readonly signal?: AbortSignal;
  /** Called when a stream has been opened again after a break. */
  readonly onResume?: () => void;
}

export async function* readEvents(transport: Transport, options: EventsOptions): AsyncGenerator<Event> {
  const { signal } = options;
  let last = options.after;
  let awaySince: number | undefined;
  for (;;) {
    try {
      const stream = await openStream(transport, last, signal);
      if (awaySince !== undefined) options.onResume?.();
      awaySince = undefined;
      for await (const one of stream) {
        if (one.id <= last) continue;
        last = one.id;
        yield one;
      }
    } catch (error) {
      signal?.throwIfAborted();
      if (awaySince !== undefined && performance.now() - awaySince > transport.timeoutMs) throw error;
      if (!isAway(error)) throw error;
    }
    awaySince ??= performance.now();
    await pause(200, signal);
  }
}

async function openStream(transport: Transport, after: number, signal: AbortSignal | undefined): Promise<AsyncIterable<Event>> {
  const bytes = await transport.stream({
    method: 'GET',
    path: routes.readEvents.path,
    query: { after },
    headers: { accept: 'text/event-stream', 'last-event-id': String(after) },
    ...(signal === undefined ? {} : { signal }),
  });
  return parseEvents(bytes);
}

/** An event of a kind that this client does not know, from a newer service, is passed over. */
async function* parseEvents(bytes: AsyncIterable<Buffer>): AsyncGenerator<Event> {
  for await (const frame of readFrames(bytes)) {
    const parsed = event.safeParse(tryJson(frame.data));
    if (parsed.success) yield parsed.data;
  }
}
