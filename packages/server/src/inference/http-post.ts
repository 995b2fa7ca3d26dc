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
}

export interface Reply {
  readonly status: number;
  readonly text: string;
}

export async function post({ url, headers, body, maxReplyBytes, signal, stallMs = 0, dispatcher }: Post): Promise<Reply> {
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
    return { status: reply.statusCode, text: await readBounded(reply.body, maxReplyBytes) };
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof RolloutError) throw error;
    const what = isStall(error) ? `nothing came for ${stallMs / 1000} s` : describe(error);
    throw new RolloutError('backend-failed', `POST ${url}: ${what}`, { cause: error });
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

function byteLength(buffers: readonly Buffer[]): number {
  return buffers.reduce((total, buffer) => total + buffer.length, 0);
}

function isStall(error: unknown): boolean {
  return error instanceof errors.HeadersTimeoutError || error instanceof errors.BodyTimeoutError;
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const code = 'code' in error && typeof error.code === 'string' ? `${error.code}: ` : '';
  return `${code}${error.message || error.name}`;
}
