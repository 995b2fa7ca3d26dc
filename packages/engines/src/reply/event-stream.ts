// Reads a stream of server-sent events from its bytes. All servers here send JSON as data and end with `[DONE]`.

import { createParser } from 'eventsource-parser';

/** Calls `onData` for each complete event up to `[DONE]`. Chunks may end anywhere, also inside a character. */
export function openEventReader(onData: (data: string) => void): (chunk: Buffer) => void {
  const decoder = new TextDecoder();
  let isDone = false;
  const parser = createParser({
    onEvent({ data }) {
      isDone ||= data === '[DONE]';
      if (!isDone) onData(data);
    },
  });
  return (chunk) => parser.feed(decoder.decode(chunk, { stream: true }));
}
