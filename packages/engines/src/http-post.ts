// One POST to a backend: the body goes out as the buffers it consists of, and the reply comes back whole, up to a limit.
// A failure on the way is `backend-failed`; an abort throws the signal's reason at once.

import { Readable } from 'node:stream';
import { type Pace, runNow } from '@millrace/base/pace';
import { definedOf, RolloutError } from '@millrace/protocol';
import { type Dispatcher, request } from 'undici';
import type { WatchedCall } from './calls/silence.ts';
import { joinChunks } from './reply/join-chunks.ts';
import { takeExperts } from './reply/take-experts.ts';

interface Post {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: readonly Buffer[];
  readonly maxReplyBytes: number;
  readonly signal: AbortSignal;
  /** Gives the call up if the server is silent for too long. */
  readonly silence?: WatchedCall | undefined;
  readonly dispatcher?: Dispatcher | undefined;
  /** A long reply is read at its pace. */
  readonly pace: Pace;
  /** Receives the chunks of a reply that is a stream of server-sent events. */
  readonly onChunk?: ((chunk: Buffer) => void) | undefined;
}

export interface Reply {
  readonly status: number;
  readonly text: string;
  /** The routed experts of the reply in base64; `text` is without them. */
  readonly experts?: readonly Buffer[];
  /** How long the server asks to be left alone. */
  readonly retryAfterMs?: number;
  /** Who answered, as far as headers say it. */
  readonly answeredBy?: string;
  /** It was a stream, which `onChunk` received; `text` is empty. */
  readonly isStream?: boolean;
}

/** Those that name a server or what stands in front of it, not a request. */
const serverHeaders = ['server', 'via', 'x-served-by', 'x-powered-by', 'x-instance-id'];

export async function post({ url, headers, body, maxReplyBytes, signal, silence, dispatcher, pace, onChunk }: Post): Promise<Reply> {
  try {
    const reply = await request(url, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json', 'content-length': `${byteLength(body)}` },
      // Not concatenated: the context is the ledger's own buffer, and copying it would cost every turn its whole length.
      body: Readable.from(body, { objectMode: false, highWaterMark: byteLength(body) }),
      signal: silence ? AbortSignal.any([signal, silence.signal]) : signal,
      headersTimeout: 0,
      bodyTimeout: 0,
      ...(dispatcher ? { dispatcher } : {}),
    });
    const status = reply.statusCode;
    const answeredBy = serverHeaders.map((name) => `${reply.headers[name] ?? ''}`).join('|');
    const isStream = status === 200 && `${reply.headers['content-type']}`.startsWith('text/event-stream');
    if (!isStream || !onChunk) {
      const chunks = await readChunks(reply.body, maxReplyBytes, silence?.noteBytes);
      const { rest, experts } = await pace.run(takeExperts(chunks));
      const joined = await pace.run(joinChunks(rest));
      const retryAfterMs = parseRetryAfter(reply.headers['retry-after']);
      return { status, text: joined.toString('utf8'), answeredBy, ...definedOf({ experts, retryAfterMs }) };
    }
    await passChunks(reply.body, maxReplyBytes, (chunk) => {
      silence?.noteBytes();
      onChunk(chunk);
    });
    return { status, text: '', isStream, answeredBy };
  } catch (error) {
    signal.throwIfAborted();
    const cause: unknown = silence?.signal.aborted ? silence.signal.reason : error;
    if (cause instanceof RolloutError && cause !== silence?.signal.reason) throw cause;
    const details = cause instanceof RolloutError ? cause.details : undefined;
    throw new RolloutError('backend-failed', `POST ${url}: ${describe(cause)}`, { cause, ...definedOf({ details }) });
  }
}

export async function readBounded(body: AsyncIterable<Buffer>, maxBytes: number): Promise<string> {
  return Buffer.concat(await readChunks(body, maxBytes)).toString('utf8');
}

async function readChunks(body: AsyncIterable<Buffer>, maxBytes: number, onBytes?: () => void): Promise<Buffer[]> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    onBytes?.();
    bytes += chunk.length;
    // Leaving the loop destroys the body, and with it the connection.
    if (bytes > maxBytes) throw refuseLength(maxBytes, chunks);
    chunks.push(chunk);
  }
  return chunks;
}

function refuseLength(maxBytes: number, chunks: readonly Buffer[]): RolloutError {
  const hasExperts = runNow(takeExperts(chunks)).isPartial;
  const advice = 'it has routed experts, which were not asked for; set sampling.routed_experts or start the server without returning them';
  return new RolloutError('backend-bad-reply', `the reply is longer than ${maxBytes} bytes${hasExperts ? `: ${advice}` : ''}`);
}

/**
 * Reads to the end, also after the last event: a connection with unread bytes cannot be used again. Chunks are taken as they arrive: an
 * iterator would cost more for each token than everything else that is done with it.
 */
function passChunks(body: Readable, maxBytes: number, onChunk: (chunk: Buffer) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    let bytes = 0;
    body.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      try {
        if (bytes > maxBytes) throw new RolloutError('backend-bad-reply', `the stream is longer than ${maxBytes} bytes`);
        onChunk(chunk);
      } catch (error) {
        body.destroy(); // and with it the connection
        reject(error);
      }
    });
    body.once('end', resolve);
    body.once('error', reject);
    body.once('close', () => reject(new Error('the connection was closed before the end of the stream')));
  });
}

function byteLength(buffers: readonly Buffer[]): number {
  return buffers.reduce((total, buffer) => total + buffer.length, 0);
}

/** Seconds only; a date is ignored. */
function parseRetryAfter(header: unknown): number | undefined {
  return typeof header === 'string' && /^\d{1,6}$/.test(header) ? Number(header) * 1000 : undefined;
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error instanceof RolloutError) return error.message;
  const code = 'code' in error && typeof error.code === 'string' ? `${error.code}: ` : '';
  return `${code}${error.message || error.name}`;
}
