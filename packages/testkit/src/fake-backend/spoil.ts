// Applies the faults that affect a connection or a whole reply, as opposed to the tokens in it.

import type { ServerResponse } from 'node:http';
import type { Fault, FaultKind } from './faults.ts';
import type { FakeDialect, Json } from './wire.ts';

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
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': '1000000' });
      response.write(JSON.stringify(reply).slice(0, 20), () => response.socket?.resetAndDestroy());
      break;
    case 'stuck':
      response.writeHead(200, { 'content-type': 'application/json' });
      response.write(JSON.stringify(reply).slice(0, 20));
      break;
    case 'garbage':
      response.writeHead(200, { 'content-type': 'application/json' }).end('<html>504 Gateway Time-out</html>');
      break;
    case 'endless':
      response.writeHead(200, { 'content-type': 'application/json' }).end(`{"pad":"${'x'.repeat(32 << 20)}"}`);
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

/** Writes the events; `stuck` stops after the first. */
export function writeEvents(response: ServerResponse, events: readonly Json[], fault: Fault | undefined): void {
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' });
  const lines = events.map((event) => `data: ${JSON.stringify(event)}\n\n`);
  if (fault === 'stuck') response.write(lines[0]);
  else response.end(`${lines.join('')}data: [DONE]\n\n`);
}

export function writeJson(response: ServerResponse, status: number, json: unknown): void {
  const text = JSON.stringify(json);
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }).end(text);
}
