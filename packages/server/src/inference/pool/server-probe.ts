// What a server says about itself, read when it joins and when it recovers: whether it can be reached, its engine and version, its
// model, its context length, and which token route it has. Nothing is sampled.

import { definedOf, messageOf, RolloutError } from '@millrace/protocol';
import { Agent, type Dispatcher, request } from 'undici';
import { z } from 'zod';
import type { BackendProbe, BackendRecord } from '../backends/backend.ts';
import { readBounded } from '../backends/http-post.ts';
import { tokenRoutes } from '../backends/open-backend.ts';
import { describeRefusal, isWithoutRoute } from '../backends/vllm.ts';
import { type ProbeOptions, within } from './probe.ts';

type Server = Pick<BackendRecord, 'url' | 'apiKey' | 'dialect' | 'model'>;

/** How long a join waits for its server. */
const joinTimeoutMs = 3000;
const maxReplyBytes = 1 << 20;

/** Throws `backend-failed` if the server cannot be reached, does not report itself healthy, or cannot take calls of this dialect. */
export async function probeServer(server: Server, options: Omit<ProbeOptions, 'dispatcher'>): Promise<BackendProbe> {
  const agent = new Agent();
  try {
    return await within({ ...options, timeoutMs: joinTimeoutMs }, async (signal) => {
      const ask = openAsk(server, { signal, dispatcher: agent });
      const health = await ask('GET', '/health');
      if (health.status >= 500 || health.status === 401) throw fail(`GET ${server.url}/health answered ${health.status}`);
      const [route, facts] = await Promise.all([findRoute(server, ask), readFacts(server, ask)]);
      return { ...facts, ...route, atMs: options.clock.now() };
    });
  } finally {
    await agent.destroy();
  }
}

interface ServerAnswer {
  readonly status: number;
  readonly text: string;
}
type Ask = (method: 'GET' | 'POST', path: string) => Promise<ServerAnswer>;

function openAsk({ url, apiKey }: Server, options: { readonly signal: AbortSignal; readonly dispatcher: Dispatcher }): Ask {
  return async (method, path) => {
    const headers = {
      ...(method === 'POST' ? { 'content-type': 'application/json' } : {}),
      ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }),
    };
    try {
      const reply = await request(`${url}${path}`, { ...options, method, headers, ...(method === 'POST' ? { body: '{}' } : {}) });
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

function parse<T>(schema: z.ZodType<T>, { status, text }: ServerAnswer): T | undefined {
  if (status !== 200) return undefined;
  try {
    return schema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined; // not JSON: the server has another route under this name
  }
}

function fail(message: string, cause?: unknown): RolloutError {
  return new RolloutError('backend-failed', message, { cause });
}
