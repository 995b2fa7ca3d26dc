// A fake backend that takes time for each token: how long an answer takes, how many tokens it has when it is aborted, and when each
// event of its stream is sent.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { text as readText } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { toVllmId } from './vllm.ts';
import {
  type FakeAnswer,
  type FakeDialect,
  type FakeOutput,
  type FakeRequest,
  type FakeServer,
  findEventEnds,
  isRecord,
  type Json,
  parseJson,
} from './wire.ts';

export interface Pacing {
  readonly tokenMs: number;
  readonly aborted: AbortSignal;
  onTokens(count: number): void;
}

/** Generations that take time, each of which can be aborted by its request id. */
export class AbortableCalls {
  readonly #aborts = new Map<unknown, AbortController>();

  /** Ends early if it is aborted or its caller disconnects. */
  async pace<T>(
    response: ServerResponse,
    { options, headers, route }: FakeRequest,
    { work, ...pacing }: Omit<Pacing, 'aborted'> & { work(pacing: Pacing): Promise<T> },
  ): Promise<T> {
    const controller = new AbortController();
    const id = route === 'sglang' ? options.rid : toVllmId(route, headers);
    this.#aborts.set(id, controller);
    response.once('close', () => controller.abort());
    try {
      return await work({ ...pacing, aborted: controller.signal });
    } finally {
      this.#aborts.delete(id);
    }
  }

  /** As in SGLang and vLLM: the aborted request itself is answered, with the tokens so far. An unknown id is ignored. */
  async serveAbort(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const json = parseJson(await readText(incoming).catch(() => ''));
    const { rid, request_ids: ids = [rid] }: Json = isRecord(json) ? json : {};
    for (const id of Array.isArray(ids) ? ids : []) this.#aborts.get(id)?.abort();
    response.writeHead(200).end();
  }
}

/** Waits as long as the tokens take. An aborted answer has the tokens so far. */
export async function paceAnswer(answer: FakeAnswer, { tokenMs, aborted, onTokens }: Pacing): Promise<FakeAnswer> {
  for (let count = 0; count < answer.tokenIds.length; count++) {
    if (!(await pause(tokenMs, aborted))) return { tokenIds: answer.tokenIds.subarray(0, count), finishReason: 'abort', text: '' };
    onTokens(count + 1);
  }
  return answer;
}

export interface PacedStream {
  readonly dialect: FakeDialect;
  readonly request: FakeRequest;
  readonly answer: FakeAnswer;
  readonly server: FakeServer;
  /** The output of the answer or of its first tokens. */
  toOutput(answer: FakeAnswer): FakeOutput;
}

/** Sends each event when its last token is due. An abort sends the tokens since the last event; a reader that disconnects, nothing more. */
export async function paceEvents(response: ServerResponse, stream: PacedStream, { tokenMs, aborted, onTokens }: Pacing): Promise<void> {
  const { dialect, request, answer, server, toOutput } = stream;
  const eventsOf = (output: FakeOutput) => dialect.events?.(request, output, server) ?? [];
  const write = (events: readonly Json[]) => response.write(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(''));
  const total = answer.tokenIds.length;
  const ends = findEventEnds(total, request);
  let sent = 0;
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' });
  for (let count = 0; count < total; count++) {
    if (!(await pause(tokenMs, aborted))) {
      if (response.destroyed) return;
      const rest = toOutput({ tokenIds: answer.tokenIds.subarray(0, count), finishReason: 'abort', text: '' });
      // An event that was sent before the abort is followed by one without tokens.
      const [last] = ends[sent - 1] === count ? eventsOf({ ...rest, tokenIds: [], logprobs: rest.logprobs && [] }) : [];
      write([...(last ? [last] : []), ...eventsOf(rest).slice(sent)]);
      break;
    }
    onTokens(count + 1);
    if (ends[sent] !== count + 1) continue;
    const events = eventsOf(toOutput(answer));
    write(events.slice(sent, count + 1 === total ? undefined : sent + 1));
    sent += 1;
  }
  response.end('data: [DONE]\n\n');
}

/** False if the signal aborts first. */
export async function pause(ms: number, signal: AbortSignal): Promise<boolean> {
  await delay(ms, undefined, { signal }).catch(() => undefined); // an abort shows in the signal
  return !signal.aborted;
}
