// A fake backend that takes time for each token: how long an answer takes, how many tokens it has when it is aborted, and when each
// event of its stream is sent.

import type { ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import type { FakeAnswer, Json } from './wire.ts';

export interface Pacing {
  readonly tokenMs: number;
  readonly aborted: AbortSignal;
  onTokens(count: number): void;
}

/** Waits as long as the tokens take. An aborted answer has the tokens so far. */
export async function paceAnswer(answer: FakeAnswer, { tokenMs, aborted, onTokens }: Pacing): Promise<FakeAnswer> {
  for (let count = 0; count < answer.tokenIds.length; count++) {
    if (!(await pause(tokenMs, aborted))) return { tokenIds: answer.tokenIds.subarray(0, count), finishReason: 'abort', text: '' };
    onTokens(count + 1);
  }
  return answer;
}

/** Sends each event when its tokens are due; ends early if the reader disconnects. */
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

/** False if the signal aborts first. */
export async function pause(ms: number, signal: AbortSignal): Promise<boolean> {
  await delay(ms, undefined, { signal }).catch(() => undefined); // an abort shows in the signal
  return !signal.aborted;
}
