// A fake backend that samples token by token: how long an answer takes, how far it has come when somebody aborts it, and how its
// stream goes out piece by piece.

import type { ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import type { FakeAnswer, Json } from './wire.ts';

export interface Pacing {
  readonly tokenMs: number;
  readonly aborted: AbortSignal;
  onTokens(count: number): void;
}

/** Waits as long as the tokens take. What is aborted on the way is answered with the tokens that there are by then. */
export async function paceAnswer(answer: FakeAnswer, { tokenMs, aborted, onTokens }: Pacing): Promise<FakeAnswer> {
  for (let count = 0; count < answer.tokenIds.length; count++) {
    if (!(await pause(tokenMs, aborted))) return { tokenIds: answer.tokenIds.subarray(0, count), finishReason: 'abort', text: '' };
    onTokens(count + 1);
  }
  return answer;
}

/** Each event as late as its tokens; ends early when the reader has gone. */
export async function paceEvents(
  response: ServerResponse,
  events: readonly Json[],
  { eventMs, onEvent }: { eventMs: number; onEvent(count: number): void },
): Promise<void> {
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' });
  for (const [i, event] of events.entries()) {
    if (!(await pause(eventMs, gone.signal))) return;
    response.write(`data: ${JSON.stringify(event)}\n\n`);
    onEvent(i + 1);
  }
  response.end('data: [DONE]\n\n');
}

/** False when the signal aborts first. */
export async function pause(ms: number, signal: AbortSignal): Promise<boolean> {
  await delay(ms, undefined, { signal }).catch(() => undefined); // an abort shows in the signal
  return !signal.aborted;
}
