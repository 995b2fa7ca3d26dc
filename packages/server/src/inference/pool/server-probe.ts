// What a server says about itself, read when it joins and when it recovers: whether it can be reached, its engine and version, its
// model, its context length, which token route it has, what its logprobs are of, and whether its tokenizer is the service's. At most
// one token is sampled, and none while the policy is paused.

import { definedOf, type LogprobsMode, messageOf, RolloutError, tryJson } from '@millrace/protocol';
import { Agent, type Dispatcher, request } from 'undici';
import { z } from 'zod';
import type { BackendProbe, BackendRecord } from '../backends/backend.ts';
import { healthPathOf } from '../backends/calls/server-health.ts';
import { toSessionAddress } from '../backends/calls/session-address.ts';
import { readBounded } from '../backends/http-post.ts';
import { tokenRoutes } from '../backends/open-backend.ts';
import { describeRefusal, isWithoutRoute } from '../backends/vllm.ts';
import { completionsRoute } from '../backends/vllm-wire.ts';
import { type ProbeOptions, within } from './probe.ts';
import { checkTokenizer, type TokenizerSample } from './tokenizer-check.ts';

type Server = Pick<BackendRecord, 'url' | 'apiKey' | 'dialect' | 'model'>;

/** How long a join waits for its server. */
const joinTimeoutMs = 3000;
/** How long it waits for the configuration, which some versions of vLLM collect slowly at the first request. */
const configTimeoutMs = 2000;
/** How long it waits for one token: the first request to a server that has just started may take seconds. */
const sampleTimeoutMs = 10_000;
const maxReplyBytes = 1 << 20;
/** The request that samples one token to see its logprob. */
const logprobsProbeId = 'probe-logprobs';

export interface ServerProbeOptions extends Omit<ProbeOptions, 'dispatcher'> {
  /** Absent if the service's tokenizer is not known here. */
  readonly tokenizer?: TokenizerSample | undefined;
  /** Whether the policy is paused, so that nothing may be sampled. */
  readonly isPaused?: boolean;
}

/** Throws `backend-failed` if the server cannot be reached, does not report itself healthy, or cannot take calls of this dialect. */
export async function probeServer(server: Server, options: ServerProbeOptions): Promise<BackendProbe> {
  const agent = new Agent();
  try {
    const found = await within({ ...options, timeoutMs: joinTimeoutMs }, async (signal) => {
      const ask = openAsk(server, { signal, dispatcher: agent });
      const path = healthPathOf(server.dialect);
      const { status } = await ask('GET', path);
      if (status >= 500 || status === 401) throw fail(`GET ${server.url}${path} answered ${status}`);
      const [route, facts, logprobsMode, tokenizer] = await Promise.all([
        findRoute(server, ask),
        readFacts(server, ask),
        readLogprobsMode(server, (path) => within({ ...options, signal, timeoutMs: configTimeoutMs }, () => ask('GET', path))),
        checkTokenizer(options.tokenizer, server, (path, body) => ask('POST', path, body)),
      ]);
      return { ...facts, ...route, ...tokenizer, ...definedOf({ logprobsMode }) };
    });
    const isOpen = server.dialect.startsWith('vllm') && found.logprobsMode === undefined && !options.isPaused;
    const sample = (signal: AbortSignal) => sampleLogprobsMode(found, openAsk(server, { signal, dispatcher: agent }));
    // A busy server may take longer: the mode stays unknown, which the view says.
    const seen = isOpen ? await within({ ...options, timeoutMs: sampleTimeoutMs }, sample).catch(() => undefined) : undefined;
    return { ...found, ...definedOf({ logprobsMode: found.logprobsMode ?? seen }), atMs: options.clock.now() };
  } finally {
    await agent.destroy();
  }
}

export interface ServerAnswer {
  readonly status: number;
  readonly text: string;
}
type Ask = (method: 'GET' | 'POST', path: string, body?: Readonly<Record<string, unknown>>) => Promise<ServerAnswer>;

function openAsk({ url, apiKey }: Server, options: { readonly signal: AbortSignal; readonly dispatcher: Dispatcher }): Ask {
  return async (method, path, sent = {}) => {
    const body = method === 'POST' ? { body: JSON.stringify(sent) } : {};
    const headers = {
      ...(method === 'POST' ? { 'content-type': 'application/json' } : {}),
      ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }),
    };
    try {
      const reply = await request(toSessionAddress(`${url}${path}`), { ...options, method, headers, ...body });
      return { status: reply.statusCode, text: await readBounded(reply.body, maxReplyBytes) };
    } catch (error) {
      options.signal.throwIfAborted();
      throw fail(`${method} ${url}${path}: ${messageOf(error)}`, error);
    }
  };
}

/** An empty request is refused by any route that is there. The route is named only if it is not the first choice. */
async function findRoute({ dialect }: Server, ask: Ask): Promise<Pick<BackendProbe, 'route' | 'routeReason'>> {
  let routeReason: string | undefined;
  for (const path of tokenRoutes[dialect]) {
    const answer = await ask('POST', path);
    if (answer.status === 401) throw fail(describeRefusal(path, answer));
    if (!isWithoutRoute(answer.status)) return routeReason === undefined ? {} : { route: path, routeReason };
    routeReason ??= describeRefusal(path, answer);
  }
  throw fail(routeReason ?? `${dialect} has no token route`);
}

const card = z.looseObject({ id: z.string(), owned_by: z.string().optional(), max_model_len: z.int().positive().nullish() });
const models = z.looseObject({ data: z.array(card) });
const versionReply = z.looseObject({ version: z.string() });
const sglangInfo = versionReply.extend({ dp_size: z.int().positive().optional().catch(undefined) });
const props = z.looseObject({
  build_info: z.string().optional(),
  default_generation_settings: z.looseObject({ n_ctx: z.int().positive().optional() }).optional(),
});

type Facts = Pick<BackendProbe, 'engine' | 'version' | 'model' | 'contextTokens' | 'ranks'>;

/** Whatever the server reports; a route that it does not have leaves its facts out. */
async function readFacts({ dialect, model }: Server, ask: Ask): Promise<Facts> {
  const read = async <T>(path: string, schema: z.ZodType<T>): Promise<T | undefined> => parse(schema, await ask('GET', path));
  const cards = (await read('/v1/models', models))?.data ?? [];
  const found = cards.find(({ id }) => id === model) ?? cards[0];
  // The other engines ignore the name of the model.
  if (model !== undefined && found && found.id !== model && dialect.startsWith('vllm'))
    throw fail(`it serves ${cards.map(({ id }) => JSON.stringify(id)).join(', ')}, not the model ${JSON.stringify(model)}`);
  const common = { engine: found?.owned_by, model: found?.id, contextTokens: found?.max_model_len ?? undefined };
  if (dialect === 'llamacpp') {
    const { build_info: version, default_generation_settings: settings } = (await read('/props', props)) ?? {};
    return definedOf({ ...common, version, contextTokens: settings?.n_ctx });
  }
  if (dialect === 'sglang') {
    const info = await read('/server_info', sglangInfo);
    return definedOf({ ...common, version: info?.version, ranks: info?.dp_size });
  }
  const info = await read('/version', versionReply);
  return definedOf({ ...common, version: info?.version, ranks: await countEngines(ask) });
}

/** vLLM reports its data-parallel ranks only as the engines of its metrics. */
async function countEngines(ask: Ask): Promise<number | undefined> {
  const { status, text } = await ask('GET', '/metrics').catch(() => ({ status: 0, text: '' })); // too long, or closed to us
  const engines = new Set(Array.from(text.matchAll(/^vllm:num_requests_running\{[^}]*engine="(\d+)"/gm), ([, engine]) => engine));
  return status === 200 && engines.size > 0 ? engines.size : undefined;
}

const vllmConfig = z.looseObject({ vllm_config: z.looseObject({ model_config: z.looseObject({ logprobs_mode: z.string() }) }) });
const vllmModes: Readonly<Record<string, LogprobsMode>> = { raw_logprobs: 'raw', processed_logprobs: 'processed' };

/** Only vLLM has a choice, and it reports it only in its development mode. Throws if its values are no logprobs at all. */
async function readLogprobsMode({ dialect }: Server, get: (path: string) => Promise<ServerAnswer>): Promise<LogprobsMode | undefined> {
  if (!dialect.startsWith('vllm')) return undefined;
  const answer = await get('/server_info?config_format=json').catch(() => undefined); // it stays unknown, which the view says
  const name = answer && parse(vllmConfig, answer)?.vllm_config.model_config.logprobs_mode;
  if (name === undefined) return undefined;
  const mode = vllmModes[name];
  if (mode === undefined) throw fail(`it returns ${name} instead of logprobs; start vLLM with --logprobs-mode processed_logprobs`);
  return mode;
}

const completion = z.looseObject({
  choices: z.tuple([z.looseObject({ logprobs: z.looseObject({ token_logprobs: z.tuple([z.number()]) }) })]),
});

/** With top_k 1, the processed logprob of the only token left is 0, and the raw one is not. */
async function sampleLogprobsMode({ model }: Facts, ask: Ask): Promise<LogprobsMode | undefined> {
  const body = { model, request_id: logprobsProbeId, prompt: [1], max_tokens: 1, temperature: 1, top_k: 1, logprobs: 1 };
  const logprob = parse(completion, await ask('POST', completionsRoute.path, body))?.choices[0].logprobs.token_logprobs[0];
  return logprob === undefined ? undefined : logprob === 0 ? 'processed' : 'raw';
}

function parse<T>(schema: z.ZodType<T>, { status, text }: ServerAnswer): T | undefined {
  // What is not JSON comes from another route under this name.
  return status === 200 ? schema.safeParse(tryJson(text)).data : undefined;
}

function fail(message: string, cause?: unknown): RolloutError {
  return new RolloutError('backend-failed', message, { cause });
}
