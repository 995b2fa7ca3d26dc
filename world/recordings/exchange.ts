// One request to a real engine and all that came back: sent as it is written down, read to its end or until the client leaves, with what
// differs from run to run replaced by fixed values.

import { setTimeout as pause } from 'node:timers/promises';
import { expandBody, type RecordedExchange, type RecordedReply, type RecordedRequest } from '@millrace/testkit';
import { modelFolder } from '../engines/world-cache.ts';

interface SendOptions {
  /** Called after each event of a stream, with their count so far; returning `leave` closes the connection. */
  readonly onEvent?: (count: number) => 'leave' | undefined;
  /** Closes the connection after this long without a reply; that nothing came is then what is recorded. */
  readonly quietMs?: number;
  readonly sent?: string;
}

export async function send(url: string, request: RecordedRequest, options: SendOptions = {}): Promise<RecordedExchange> {
  const { onEvent = () => undefined, quietMs = 120_000, sent } = options;
  const given = { request, ...(sent === undefined ? {} : { sent }) };
  const leave = new AbortController();
  const quiet = setTimeout(() => leave.abort(), quietMs);
  let answer: Response;
  try {
    answer = await fetch(`${url}${request.path}`, {
      method: request.method,
      headers: { ...(request.body === undefined ? {} : { 'content-type': 'application/json' }), ...request.headers },
      ...(request.body === undefined ? {} : { body: JSON.stringify(expandBody(request.body)) }),
      signal: leave.signal,
    });
  } catch (error) {
    return { ...given, nothing: leave.signal.aborted ? `no reply for ${quietMs / 1000} s` : `no connection: ${causeOf(error)}` };
  } finally {
    clearTimeout(quiet);
  }
  return { ...given, reply: await readReply(answer, { onEvent, leave }) };
}

/** A request whose reply is read while others are sent: resolves `begun` at the first event. */
export function open(url: string, request: RecordedRequest, options: SendOptions & { readonly leaveAfter?: number } = {}) {
  const { promise: begun, resolve } = Promise.withResolvers<void>();
  const onEvent = (count: number) => {
    resolve();
    return count === options.leaveAfter ? 'leave' : undefined;
  };
  const done = send(url, request, { ...options, onEvent });
  void done.then(() => resolve());
  return { begun, done };
}

export { pause };

async function readReply(
  answer: Response,
  { onEvent, leave }: { readonly onEvent: (count: number) => 'leave' | undefined; readonly leave: AbortController },
): Promise<RecordedReply> {
  const isStream = `${answer.headers.get('content-type')}`.startsWith('text/event-stream');
  const decoder = new TextDecoder();
  let text = '';
  let seen = 0;
  let ended: RecordedReply['ended'] = 'end';
  try {
    for await (const chunk of answer.body ?? []) {
      text += decoder.decode(chunk, { stream: true });
      for (; isStream && seen < countEvents(text); seen++) if (onEvent(seen + 1) === 'leave') leave.abort();
    }
  } catch {
    ended = leave.signal.aborted ? 'client' : 'lost'; // which of the two is what the recording is about
  }
  return { status: answer.status, headers: toHeaders(answer.headers), ...toBody(normalise(text), isStream), ended };
}

function toBody(text: string, isStream: boolean): Pick<RecordedReply, 'body' | 'text' | 'events'> {
  if (isStream) return { events: text.split('\n\n').filter((event) => event !== '') };
  try {
    return { body: JSON.parse(text) };
  } catch {
    return { text }; // not JSON
  }
}

const volatileHeaders = ['date', 'content-length', 'keep-alive', 'x-request-id'];

function toHeaders(headers: Headers): Record<string, string> {
  return Object.fromEntries([...headers].filter(([name]) => !volatileHeaders.includes(name)));
}

/** Times, clocks and random ids differ from run to run, and paths from machine to machine. */
function normalise(text: string): string {
  return text
    .replaceAll(modelFolder(), '/models/smollm2')
    .replace(/"created": ?\d+/g, '"created":1700000000')
    .replace(/("(?:\w+_ms|\w+_per_second)": ?)-?[\d.e+-]+/g, '$10')
    .replace(/"(id|system_fingerprint)": ?"(modelperm|chatcmpl|vllm)-[^"]*"/g, '"$1":"$2-0"')
    .replace(/127\.0\.0\.1:\d+/g, '127.0.0.1:8000');
}

function countEvents(text: string): number {
  return text.split('\n\n').length - 1;
}

function causeOf(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof Error && 'code' in cause ? String(cause.code) : String(error);
}
