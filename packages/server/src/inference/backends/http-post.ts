// One POST to a backend: the body goes out as the buffers it consists of, and the reply comes back whole, up to a limit.
// A failure on the way is `backend-failed`; an abort throws the signal's reason at once.

import { Readable } from 'node:stream';
import { definedOf, RolloutError } from '@millrace/protocol';
import { type Dispatcher, errors, request } from 'undici';

export interface Post {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: readonly Buffer[];
  readonly maxReplyBytes: number;
  readonly signal: AbortSignal;
  /** The call fails if the server sends no byte for this long. A generation that is not streamed is silent until it ends. */
  readonly stallMs?: number | undefined;
  readonly dispatcher?: Dispatcher | undefined;
  /** Receives the chunks of a reply that is a stream of server-sent events. */
  readonly onChunk?: ((chunk: Buffer) => void) | undefined;
}

export interface Reply {
  readonly status: number;
  readonly text: string;
  /** How long the server asks to be left alone. */
  readonly retryAfterMs?: number;
  /** It was a stream, which `onChunk` received; `text` is empty. */
  readonly isStream?: boolean;
}

export async function post({ url, headers, body, maxReplyBytes, signal, stallMs = 0, dispatcher, onChunk }: Post): Promise<Reply> {
  try {
    const reply = await request(url, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json', 'content-length': `${byteLength(body)}` },
      // Not concatenated: the context is the ledger's own buffer, and copying it would cost every turn its whole length.
      body: Readable.from(body, { objectMode: false, highWaterMark: byteLength(body) }),
      signal,
      headersTimeout: stallMs,
      bodyTimeout: stallMs,
      ...(dispatcher ? { dispatcher } : {}),
    });
    const status = reply.statusCode;
    const isStream = status === 200 && `${reply.headers['content-type']}`.startsWith('text/event-stream');
    if (!isStream || !onChunk) {
      const text = await readBounded(reply.body, maxReplyBytes);
      return { status, text, ...definedOf({ retryAfterMs: parseRetryAfter(reply.headers['retry-after']) }) };
    }
    await readChunks(reply.body, maxReplyBytes, onChunk);
    return { status, text: '', isStream };
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof RolloutError) throw error;
    const message = `POST ${url}: ${isStall(error) ? `nothing came for ${stallMs / 1000} s` : describe(error)}`;
    throw new RolloutError('backend-failed', message, { cause: error, ...(isStall(error) ? { details: { reason: 'silence' } } : {}) });
  }
}

export async function readBounded(body: AsyncIterable<Buffer>, maxBytes: number): Promise<string> {
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

/** Reads to the end, also after the last event: a connection with unread bytes cannot be used again. */
async function readChunks(body: AsyncIterable<Buffer>, maxBytes: number, onChunk: (chunk: Buffer) => void): Promise<void> {
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw new RolloutError('backend-bad-reply', `the stream is longer than ${maxBytes} bytes`);
    onChunk(chunk);
  }
}

function byteLength(buffers: readonly Buffer[]): number {
  return buffers.reduce((total, buffer) => total + buffer.length, 0);
}

/** Seconds only; a date is ignored. */
function parseRetryAfter(header: unknown): number | undefined {
  return typeof header === 'string' && /^\d{1,6}$/.test(header) ? Number(header) * 1000 : undefined;
}

function isStall(error: unknown): boolean {
  return error instanceof errors.HeadersTimeoutError || error instanceof errors.BodyTimeoutError;
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const code = 'code' in error && typeof error.code === 'string' ? `${error.code}: ` : '';
  return `${code}${error.message || error.name}`;
}
