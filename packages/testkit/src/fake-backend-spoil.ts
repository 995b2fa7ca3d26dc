// How a fault spoils an answer on its way out: either the reply's JSON or the connection itself.

import type { ServerResponse } from 'node:http';
import type { FaultKind } from './fake-backend-faults.ts';
import { toErrorReply } from './fake-backend-wire.ts';

type Json = Record<string, unknown>;

/** Writes the reply with the fault in it. `hang` writes nothing. */
export function writeSpoiled(response: ServerResponse, reply: Json, fault: FaultKind): void {
  switch (fault) {
    case 'hang':
      break;
    case 'reset':
      response.socket?.resetAndDestroy();
      break;
    case 'cut':
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': '1000000' });
      response.write(JSON.stringify(reply).slice(0, 20), () => response.socket?.resetAndDestroy());
      break;
    case 'garbage':
      response.writeHead(200, { 'content-type': 'application/json' }).end('<html>504 Gateway Time-out</html>');
      break;
    case 'endless':
      response.writeHead(200, { 'content-type': 'application/json' }).end(`{"pad":"${'x'.repeat(32 << 20)}"}`);
      break;
    case 'http-500':
      writeJson(response, 500, toErrorReply(500, 'EngineCore encountered an issue.'));
      break;
    case 'http-429':
      writeJson(response, 429, toErrorReply(429, 'too many requests'));
      break;
    case 'http-400':
      writeJson(response, 400, toErrorReply(400, 'temperature must be non-negative, got -1.'));
      break;
    case 'context-length':
      writeJson(response, 400, toErrorReply(400, "This model's maximum context length is 8 tokens."));
      break;
    default:
      writeJson(response, 200, spoil(reply, fault));
  }
}

export function writeJson(response: ServerResponse, status: number, json: unknown): void {
  const text = JSON.stringify(json);
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }).end(text);
}

type ReplyFault = 'no-choices' | 'misaligned' | 'no-logprobs' | 'floor-logprobs' | 'bad-ids' | 'too-many' | 'wrong-prompt' | 'abort';

// biome-ignore lint/suspicious/noExplicitAny: it breaks JSON of two shapes on purpose
function spoil(reply: any, fault: ReplyFault): Json {
  const [choice] = reply.choices;
  const logprobs: unknown[] | undefined = choice.logprobs?.content ?? choice.logprobs?.token_logprobs;
  switch (fault) {
    case 'no-choices':
      return { ...reply, choices: [] };
    case 'misaligned':
      logprobs?.pop();
      return reply;
    case 'no-logprobs':
      return { ...reply, choices: [{ ...choice, logprobs: null }] };
    case 'floor-logprobs':
      logprobs?.splice(0, 1, choice.logprobs.content ? { ...choice.logprobs.content[0], logprob: -9999 } : -9999);
      return reply;
    case 'bad-ids':
      choice.token_ids[0] = '12';
      return reply;
    case 'too-many':
      for (let i = 0; i < 1000; i++) choice.token_ids.push(1);
      for (let i = 0; i < 1000; i++) logprobs?.push(logprobs[0]);
      return reply;
    case 'wrong-prompt':
      return { ...reply, usage: { ...reply.usage, prompt_tokens: reply.usage.prompt_tokens + 1 } };
    case 'abort':
      return { ...reply, choices: [{ ...choice, finish_reason: 'abort' }] };
  }
}
