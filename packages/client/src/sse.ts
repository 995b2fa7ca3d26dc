// Server-sent events, from bytes to messages. A stream that breaks in the middle of a message yields nothing of it.

import { createParser, type EventSourceMessage } from 'eventsource-parser';

export async function* readMessages(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<EventSourceMessage> {
  const complete: EventSourceMessage[] = [];
  const parser = createParser({ onEvent: (message) => complete.push(message) });
  const decoder = new TextDecoder();
  for await (const chunk of bytes) {
    parser.feed(decoder.decode(chunk, { stream: true }));
    yield* complete.splice(0);
  }
}
