// The smallest backend that a service can sample from: vLLM's token route with a script in place of a model. It keeps what it sent,
// so that every token of a trajectory can be compared with it.

import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json as readJson } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { openTokenizer, type Tokenizer } from '@millrace/model';
import { messageOf } from '@millrace/protocol';

interface ScriptInput {
  /** The rollout that asks. */
  readonly rolloutId: string;
  /** How many assistant turns the prompt already has. */
  readonly turn: number;
  /** The prompt up to the first assistant turn. */
  readonly opening: string;
}

/** What the model says next, without the token that ends its turn. */
export type TurnScript = (input: ScriptInput) => string;

export interface ScriptedBackend extends AsyncDisposable {
  readonly url: string;
  /** What was sent to the rollout for a prompt of this length. */
  sentTo(rolloutId: string, promptTokens: number): SentTurn | undefined;
}

interface SentTurn {
  readonly tokenIds: readonly number[];
  readonly logprobs: readonly number[];
}

interface ScriptedBackendOptions {
  readonly script: TurnScript;
  /** The folder of the tokenizer. */
  readonly model: string;
  readonly latencyMs?: number;
}

/** Listens on a free port of the loopback address. */
export async function openScriptedBackend({ script, model, latencyMs = 0 }: ScriptedBackendOptions): Promise<ScriptedBackend> {
  const tokenizer = await openTokenizer(model);
  const sent = new Map<string, SentTurn>();
  const server = createServer((request, response) => {
    void answer(request, response).catch((error) => writeJson(response, 500, { error: { message: messageOf(error) } }));
  });

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.url === '/health') return void response.writeHead(200).end();
    if (request.method !== 'POST' || request.url !== '/inference/v1/generate') return writeJson(response, 404, { detail: 'Not Found' });
    const { token_ids: promptIds, sampling_params, stream } = (await readJson(request)) as GenerateBody;
    const rolloutId = String(request.headers['x-session-id']);
    const whole = sample(tokenizer, script, { rolloutId, promptIds });
    const tokenIds = whole.slice(0, sampling_params.max_tokens);
    const reply: SentTurn = { tokenIds, logprobs: tokenIds.map((id, index) => toLogprob(promptIds.length + index, id)) };
    sent.set(`${rolloutId} ${promptIds.length}`, reply);
    if (latencyMs > 0) await delay(latencyMs);
    const finish = whole.length > tokenIds.length ? 'length' : 'stop';
    const usage = { prompt_tokens: promptIds.length, completion_tokens: tokenIds.length };
    const choice = {
      index: 0,
      token_ids: tokenIds,
      logprobs: { content: reply.logprobs.map((logprob, index) => ({ token: `token_id:${tokenIds[index]}`, logprob })) },
      finish_reason: finish,
    };
    if (!stream) return writeJson(response, 200, { choices: [choice], usage });
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (const event of [{ choices: [choice] }, { choices: [], usage }]) response.write(`data: ${JSON.stringify(event)}\n\n`);
    response.end('data: [DONE]\n\n');
  }

  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    sentTo: (rolloutId, promptTokens) => sent.get(`${rolloutId} ${promptTokens}`),
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
    },
  };
}

interface GenerateBody {
  readonly token_ids: readonly number[];
  readonly sampling_params: { readonly max_tokens: number };
  readonly stream?: boolean;
}

function sample(tokenizer: Tokenizer, script: TurnScript, { rolloutId, promptIds }: { rolloutId: string; promptIds: readonly number[] }) {
  const text = tokenizer.decode(promptIds);
  const [opening = '', ...turns] = text.split('<|im_start|>assistant\n');
  const said = script({ rolloutId, opening, turn: Math.max(0, turns.length - 1) });
  return [...tokenizer.encode(`${said}<|im_end|>`)];
}

/** Any number will do, as long as a token that was moved or changed shows: it depends on place and id, and is exact in float32. */
function toLogprob(position: number, id: number): number {
  const mixed = Math.imul(position + 1, 0x9e3779b1) ^ Math.imul(id + 1, 0x85ebca6b);
  return -((mixed >>> 12) & 0xfff) / 1024;
}

function writeJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

/** A tool call in the hermes form. */
export function renderCall(name: string, args: Readonly<Record<string, unknown>>): string {
  return `<tool_call>\n${JSON.stringify({ name, arguments: args })}\n</tool_call>`;
}
