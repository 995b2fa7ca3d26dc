// Server-sent events, from bytes to frames. A frame is given out only when its closing blank line has come, so a stream
// that breaks in the middle of one gives nothing of it.

export interface Frame {
  readonly id?: string;
  readonly event?: string;
  readonly data: string;
}

export async function* readFrames(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Frame> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of bytes) {
    rest += decoder.decode(chunk, { stream: true });
    const blocks = rest.split(/\r?\n\r?\n/);
    rest = blocks.pop() ?? '';
    for (const block of blocks) {
      const frame = parseFrame(block);
      if (frame !== undefined) yield frame;
    }
  }
}

/** Undefined for a block without data, such as a comment that only keeps the connection open. */
function parseFrame(block: string): Frame | undefined {
  const fields = new Map<string, string>();
  for (const line of block.split(/\r?\n/)) {
    const [, name, value] = /^([^:]+):? ?(.*)$/.exec(line) ?? [];
    if (name === undefined || value === undefined) continue;
    const before = fields.get(name);
    fields.set(name, name === 'data' && before !== undefined ? `${before}\n${value}` : value);
  }
  const [id, event, data] = [fields.get('id'), fields.get('event'), fields.get('data')];
  if (data === undefined) return undefined;
  return { data, ...(id === undefined ? {} : { id }), ...(event === undefined ? {} : { event }) };
}
