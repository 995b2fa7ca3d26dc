// Serves the policy through vLLM's token API: POST /inference/v1/generate takes ids and returns ids with true log-probabilities. Weights
// are swapped while it runs, as in a real engine: a request keeps the weights it started with, and replies do not name their version.

import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { text as readText } from 'node:stream/consumers';
import { z } from 'zod';
import type { Network } from '../model/network.ts';
import { makeRandom } from '../model/random.ts';
import { generate } from '../model/sampler.ts';

/** Unsupported filters and penalties must be switched off in the request: ignoring one would make the logprobs wrong. */
const samplingParams = z.strictObject({
  temperature: z.number().gt(0),
  max_tokens: z.int().min(1),
  seed: z.int().min(0).optional(),
  stop_token_ids: z.array(z.int()),
  top_p: z.literal(1),
  top_k: z.literal([0, -1]),
  min_p: z.literal(0),
  repetition_penalty: z.literal(1),
  presence_penalty: z.literal(0),
  frequency_penalty: z.literal(0),
  n: z.literal(1),
  min_tokens: z.literal(0),
  logprobs: z.int().min(0),
  ignore_eos: z.boolean(),
  /** There are no experts, and every token is an event. */
  routed_experts_prompt_start: z.int().optional(),
  stream_interval: z.int().optional(),
  skip_special_tokens: z.boolean(),
  detokenize: z.boolean(),
});
const generateRequest = z.looseObject({ token_ids: z.array(z.int().min(0)).min(1), sampling_params: samplingParams });
type PolicyRequest = z.infer<typeof generateRequest>;

export class PolicyServer implements AsyncDisposable {
  readonly #seed: number;
  #network: Network;
  readonly #server = createServer((request, response) => {
    this.#answer(request, response).catch((error) => refuse(response, 500, String(error)));
  });

  private constructor(seed: number, network: Network) {
    this.#seed = seed;
    this.#network = network;
  }

  static async open(seed: number, network: Network): Promise<PolicyServer> {
    const server = new PolicyServer(seed, network);
    server.#server.listen(0, '127.0.0.1');
    await once(server.#server, 'listening');
    return server;
  }

  /** New requests are sampled with these weights, which must not change afterwards. */
  swap(network: Network): void {
    this.#network = network;
  }

  get url(): string {
    const address = this.#server.address();
    if (address === null || typeof address === 'string') throw new Error('the policy server is not listening');
    return `http://127.0.0.1:${address.port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#server.listening) return;
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method !== 'POST' || request.url !== '/inference/v1/generate')
      return refuse(response, 404, `no such route: ${request.method} ${request.url}`);
    const parsed = generateRequest.safeParse(parseJson(await readText(request)));
    if (!parsed.success) return refuse(response, 400, z.prettifyError(parsed.error));
    const network = this.#network;
    const problem = findProblem(parsed.data, network);
    if (problem !== undefined) return refuse(response, 400, problem);
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    const session = `${request.headers['x-session-id']}`;
    const body = await this.#generate(network, parsed.data, { session, signal: gone.signal }).catch((error: unknown) => {
      if (!gone.signal.aborted) throw error;
    });
    if (body) response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  }

  /** Deterministic for the same ids, seed and weights; without a seed, for the same rollout. */
  async #generate(network: Network, request: PolicyRequest, { session, signal }: { session: string; signal: AbortSignal }) {
    const { token_ids, sampling_params: params } = request;
    const { tokenIds, logprobs, finishReason } = await generate(network, token_ids, {
      maxTokens: params.max_tokens,
      temperature: params.temperature,
      stopTokenIds: params.stop_token_ids,
      random: makeRandom(this.#seed, params.seed ?? session, token_ids.length),
      signal,
    });
    const content = tokenIds.map((id, i) => ({ token: `token_id:${id}`, logprob: logprobs[i], bytes: null, top_logprobs: [] }));
    return {
      choices: [{ index: 0, token_ids: tokenIds, logprobs: { content }, finish_reason: finishReason }],
      usage: { prompt_tokens: token_ids.length, completion_tokens: tokenIds.length, total_tokens: token_ids.length + tokenIds.length },
    };
  }
}

function findProblem({ token_ids, sampling_params }: PolicyRequest, { shape }: Network): string | undefined {
  const unknown = token_ids.find((id) => id >= shape.vocabulary);
  if (unknown !== undefined) return `token id ${unknown} is not in a vocabulary of ${shape.vocabulary}`;
  const wanted = token_ids.length + sampling_params.max_tokens;
  return wanted > shape.positions ? `the maximum context length is ${shape.positions} tokens, and ${wanted} were asked for` : undefined;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // the schema says what was expected
  }
}

function refuse(response: ServerResponse, status: number, message: string): void {
  if (response.headersSent || response.destroyed) return;
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify({ error: { message, code: status } }));
}
