// Streamed requests, timed: when the first text arrived and when the reply ended. The same reader for the gateway and for the engine itself.

import { once } from 'node:events';
import { Agent, type IncomingMessage, request } from 'node:http';

export interface TimedReply {
  readonly firstMs: number;
  readonly wholeMs: number;
  /** All of it. */
  readonly text: string;
}

/** `first`: what the first event with text has in it, and no event before it. */
export interface StreamedCall {
  readonly url: string;
  readonly body: unknown;
  readonly first: string;
  readonly key?: string;
}

export function openTimedClient(connections: number): (call: StreamedCall) => Promise<TimedReply> {
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  return async ({ url, body, first, key }) => {
    const payload = JSON.stringify(body);
    const startedAt = performance.now();
    const headers = { 'content-type': 'application/json', ...(key === undefined ? {} : { authorization: `Bearer ${key}` }) };
    const asked = request(url, { method: 'POST', agent, headers }).end(payload);
    const [reply] = (await once(asked, 'response')) as [IncomingMessage];
    let [text, firstMs] = ['', 0];
    for await (const chunk of reply) {
      text += chunk;
      if (firstMs === 0 && text.includes(first)) firstMs = performance.now() - startedAt;
    }
    if (reply.statusCode !== 200 || firstMs === 0) throw new Error(`${url} answered ${reply.statusCode}: ${text.slice(0, 500)}`);
    return { firstMs, wholeMs: performance.now() - startedAt, text };
  };
}

interface OpenedGateway {
  readonly id: string;
  readonly url: string;
  readonly key: string;
}

export async function openSession(serviceUrl: string, sampling: Readonly<Record<string, unknown>> = {}): Promise<OpenedGateway> {
  const headers = { 'content-type': 'application/json' };
  const body = JSON.stringify({ idle_timeout_s: 3600, sampling });
  const reply = await fetch(`${serviceUrl}/v1/gateways`, { method: 'POST', headers, body });
  const { id, key, base_url } = (await reply.json()) as { id: string; key: string; base_url: string };
  return { id, key, url: `${base_url}/chat/completions` };
}

/** In a chat completion, the event with the first text. */
export const firstText = '"content":"word';

/** The text of a streamed chat completion. */
export function readContent(text: string): string {
  return [...text.matchAll(/"content":"((?:[^"\\]|\\.)*)"/g)].map(([, piece]) => JSON.parse(`"${piece}"`)).join('');
}

/** The engine itself, with as many prompt tokens. */
export function toDirect(url: string, promptTokens: number): StreamedCall {
  const token_ids = Array.from({ length: promptTokens }, (_, at) => 1000 + (at % 50_000));
  const body = { token_ids, stream: true, sampling_params: { max_tokens: 256, temperature: 1, logprobs: 0 } };
  return { url: `${url}/inference/v1/generate`, body, first: '"token_ids":[' };
}
