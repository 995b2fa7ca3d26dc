// How the fake backend writes its replies: with the headers of its engine, and with the faults that affect a connection or a whole reply,
// as opposed to the tokens in it.

import type { ServerResponse } from 'node:http';
import type { FakeDialect, FakeEngine, FakeRefusal, Json } from './engines/wire.ts';
import type { FaultKind } from './faults.ts';

/** Of vLLM and llama.cpp as recorded. SGLang has the server, and its CORS settings, of vLLM: sglang/srt/entrypoints/http_server.py. */
const headersOf: Readonly<Record<FakeEngine, Readonly<Record<string, string>>>> = {
  vllm: { server: 'uvicorn', vary: 'Origin' },
  sglang: { server: 'uvicorn', vary: 'Origin' },
  llamacpp: { server: 'llama.cpp', 'access-control-allow-origin': '' },
  prorl: { server: 'uvicorn' },
};

/** Sets the headers of an engine. A stream is begun at once. */
export function prepareReply(response: ServerResponse, engine: FakeEngine, kind: 'json' | 'stream' = 'json'): void {
  const isLlama = engine === 'llamacpp';
  for (const [name, value] of Object.entries(headersOf[engine])) response.setHeader(name, value);
  response.removeHeader('connection'); // neither engine names it in a good reply
  const [json, stream] = isLlama
    ? ['application/json; charset=utf-8', 'text/event-stream']
    : ['application/json', 'text/event-stream; charset=utf-8'];
  response.setHeader('content-type', kind === 'stream' ? stream : json);
  if (kind === 'stream' && isLlama) response.setHeader('x-accel-buffering', 'no');
  if (kind === 'stream') response.writeHead(200);
}

/** Writes the reply with the fault. `hang` writes nothing. */
export function writeSpoiled(response: ServerResponse, reply: Json, { fault, dialect }: { fault: FaultKind; dialect: FakeDialect }): void {
  const { error } = dialect;
  switch (fault) {
    case 'hang':
      break;
    case 'reset':
      response.socket?.resetAndDestroy();
      break;
    case 'cut':
      response.writeHead(200, { 'content-length': '1000000' });
      response.write(JSON.stringify(reply).slice(0, 20), () => response.socket?.resetAndDestroy());
      break;
    case 'stuck':
      response.writeHead(200);
      response.write(JSON.stringify(reply).slice(0, 20));
      break;
    case 'garbage':
      response.writeHead(200).end('<html>504 Gateway Time-out</html>');
      break;
    case 'endless':
      response.writeHead(200).end(`{"pad":"${'x'.repeat(32 << 20)}"}`);
      break;
    case 'http-500':
      writeJson(response, 500, error(500, 'EngineCore encountered an issue.'));
      break;
    case 'http-429':
      writeJson(response, 429, error(429, 'too many requests'));
      break;
    case 'http-400':
      writeJson(response, 400, error(400, 'temperature must be non-negative, got -1.'));
      break;
    case 'context-length':
      writeJson(response, 400, error(400, "This model's maximum context length is 8 tokens."));
      break;
    case 'no-choices':
      writeJson(response, 200, dialect.withoutOutput(reply));
      break;
    default:
      writeJson(response, 200, reply);
  }
}

/** A streamed request is refused by an event where the engine checks it late. */
export function writeRefusal(
  response: ServerResponse,
  { status, body, event }: FakeRefusal,
  { isStream, dialect }: { isStream: boolean; dialect: FakeDialect },
): void {
  if (isStream && event) writeEvents(response, { events: [event], dialect });
  else writeJson(response, status, body);
}

/** Writes a whole stream; `stuck` stops after the first event. */
export function writeEvents(
  response: ServerResponse,
  { events, dialect, fault }: { events: readonly Json[]; dialect: FakeDialect; fault?: FaultKind },
): void {
  prepareReply(response, dialect.engine, 'stream');
  if (fault === 'stuck') response.write(toEventLines(events.slice(0, 1)));
  else response.end(`${toEventLines(events)}${dialect.lastLine}`);
}

export function toEventLines(events: readonly Json[]): string {
  return events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('');
}

export function writeJson(response: ServerResponse, status: number, json: unknown): void {
  const text = JSON.stringify(json);
  if (status >= 400 && response.getHeader('server') === 'llama.cpp') response.setHeader('connection', 'close');
  response.writeHead(status, { 'content-length': Buffer.byteLength(text) }).end(text);
}

export function writeEmpty(response: ServerResponse, status: number): void {
  response.removeHeader('content-type');
  response.writeHead(status, { 'content-length': '0' }).end();
}
