// One POST to a backend: the body goes out as the buffers it is made of, the reply comes back whole, up to a bound.
// What fails on the way is `backend-failed`; an abort throws the signal's reason at once.

import { Readable } from 'node:stream';
import { RolloutError } from '@millrace/protocol';
import { type Dispatcher, errors, request } from 'undici';

export interface Post {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: readonly Buffer[];
  readonly maxReplyBytes: number;
  readonly signal: AbortSignal;
  /** After so long without a byte from the server the call has failed. A generation that is not streamed is silent until it ends. */
  readonly stallMs?: number;
  readonly dispatcher?: Dispatcher;
  /** Gets the pieces of an answer that is a stream of server-sent events. */
  readonly onChunk?: (chunk: Buffer) => void;
}

export interface Reply {
  readonly status: number;
  readonly text: string;
  /** How long the server asks to be left alone. */
  readonly retryAfterMs?: number;
  /** It came as events, and has no text. */
  readonly isStream?: boolean;
}

export async function post({ url, headers, body, maxReplyBytes, signal, stallMs = 0, dispatcher, onChunk }: Post): Promise<Reply> {
  try {
    const reply = await request(url, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json', 'content-length': `${byteLength(body)}` },
      // Not joined: the context is in `body` as it is in the ledger, and copying it would cost every turn its whole length.
      body: Readable.from(body, { objectMode: false, highWaterMark: byteLength(body) }),
      signal,
      headersTimeout: stallMs,
      bodyTimeout: stallMs,
      ...(dispatcher ? { dispatcher } : {}),
    });
    const isStream = reply.statusCode === 200 && `${reply.headers['content-type']}`.startsWith('text/event-stream');
    if (!isStream || !onChunk) {
      const text = await readBounded(reply.body, maxReplyBytes);
      return { status: reply.statusCode, text, ...readRetryAfter(reply.headers['retry-after']) };
    }
    await readChunks(reply.body, maxReplyBytes, onChunk);
    return { status: reply.statusCode, text: '', isStream };
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof RolloutError) throw error;
    const message = `POST ${url}: ${isStall(error) ? `nothing came for ${stallMs / 1000} s` : describe(error)}`;
    throw new RolloutError('backend-failed', message, { cause: error, ...(isStall(error) ? { details: { reason: 'silence' } } : {}) });
  }
}

async function readBounded(body: AsyncIterable<Buffer>, maxBytes: number): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    // Leaving the loop destroys the body, and with it the connection.
    if (bytes > maxBytes) throw new RolloutError('backend-bad-reply', `the reply is longer than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, bytes).toString('utf8');
}

/** To its end, also behind the last event: a connection whose answer was not read to the end is not used again. */
async function readChunks(body: AsyncIterable<Buffer>, maxBytes: number, onChunk: (chunk: Buffer) => void): Promise<void> {
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw new RolloutError('backend-bad-reply', `the stream is longer than ${maxBytes} bytes`);
    onChunk(chunk);
  }
}

/** Finds the data of each event in the chunks of a stream, up to `[DONE]`. Every server here writes one line of data for each. */
export function openEventSplit(onEvent: (data: string) => void): (chunk: Buffer) => void {
  let rest: Buffer = Buffer.alloc(0);
  let isDone = false;
  return (chunk) => {
    const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    let from = 0;
    for (let end = bytes.indexOf(10); end >= 0 && !isDone; end = bytes.indexOf(10, from)) {
      const line = bytes.toString('utf8', from, end).trim();
      from = end + 1;
      isDone = line === 'data: [DONE]';
      if (!isDone && line.startsWith('data: ')) onEvent(line.slice(6));
    }
    rest = bytes.subarray(from);
  };
}

function byteLength(buffers: readonly Buffer[]): number {
  return buffers.reduce((total, buffer) => total + buffer.length, 0);
}

/** Seconds; a date is not read. */
function readRetryAfter(header: unknown): Pick<Reply, 'retryAfterMs'> {
  return typeof header === 'string' && /^\d{1,6}$/.test(header) ? { retryAfterMs: Number(header) * 1000 } : {};
}

function isStall(error: unknown): boolean {
  return error instanceof errors.HeadersTimeoutError || error instanceof errors.BodyTimeoutError;
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const code = 'code' in error && typeof error.code === 'string' ? `${error.code}: ` : '';
  return `${code}${error.message || error.name}`;
}
