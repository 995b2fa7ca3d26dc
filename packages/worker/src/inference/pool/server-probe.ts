// What a server says about itself, read when it joins, when it recovers and when it may have become another: whether it can be reached,
// its engine and version, its model, its context length, which start of it answers, which token route it has, what its logprobs are of, and
// whether its tokenizer is the service's. At most one token is sampled, and none while the policy is paused.

import {
  type BackendProbe,
  completionsRoute,
  describeRefusal,
  healthPathOf,
  isWithoutRoute,
  type ServerFacts,
  tokenRoutes,
} from '@millrace/engines';
import { type Dialect, definedOf, errorBody, type LogprobsMode, messageOf, RolloutError, tryJson } from '@millrace/protocol';
import { factsOf, toSeveral } from '@millrace/store';
import { Agent } from 'undici';
import { z } from 'zod';
import { type Ask, type AskedServer, openAsk, parseAnswer, type ServerAnswer } from '../identity/ask-server.ts';
import { readInstance } from '../identity/instance.ts';
import { type ProbeOptions, within } from './probe.ts';
import { comesBack, isAloneIn, readTurns, sessionOf } from './server-turns.ts';
import { checkTokenizer, type TokenizerSample } from './tokenizer-check.ts';

/** How long a join waits for its server. */
const joinTimeoutMs = 3000;
/** How long it waits for what it can do without: the metrics, and the configuration, which some versions of vLLM collect slowly at first. */
const configTimeoutMs = 2000;
/** How long it waits for one token: the first request to a server that has just started may take seconds. */
const sampleTimeoutMs = 10_000;
/** A server that is restarted while it is asked is asked again. */
const rounds = 3;
/** Behind a router, how many more sessions are asked than there are servers: two sessions may share one. */
const sessionsMore = 6;
const mixedReason = 'several servers answer at its address, each for some requests: join each of them instead, or give logprobs_mode';
/** The request that samples one token to see its logprob. */
const logprobsProbeId = 'probe-logprobs';

interface ServerProbeOptions extends Omit<ProbeOptions, 'dispatcher'> {
  /** Absent if the service's tokenizer is not known here. */
  readonly tokenizer?: TokenizerSample | undefined;
  /** Whether the policy is paused, so that nothing may be sampled. */
  readonly isPaused?: boolean;
  /** For the questions that sample nothing. */
  readonly timeoutMs?: number;
  /** Only what tells one server from another: neither its routes nor its tokenizer. */
  readonly isBrief?: boolean;
  /** Behind a router that chooses a server by it. */
  readonly session?: string;
}

/**
 * Throws `backend-failed` if the server cannot be reached, does not report itself healthy, or cannot take calls of this dialect. All facts
 * are of one start of it: a server that is restarted meanwhile is asked again.
 */
export async function probeServer(server: AskedServer, options: ServerProbeOptions): Promise<BackendProbe> {
  const seen: string[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const found = await probeOnce(server, options);
    const { instance } = found;
    if (instance === undefined) return found;
    const turns = await readTurns(server, options);
    seen.push(instance, ...turns);
    if (comesBack(seen)) return await probeSeveral(server, options, { found, seen });
    if (turns.every((one) => one === instance)) return found;
  }
  throw fail('it was restarted again and again while it was asked what it is');
}

/**
 * Of several servers: what all of them share. Facts are those of a server only if its session stays with it; a router that chooses for each
 * request mixes the answers of all, and then nothing is known but what holds for any of them.
 */
async function probeSeveral(server: AskedServer, options: ServerProbeOptions, { found, seen }: Seen): Promise<BackendProbe> {
  const instances = new Set(seen);
  const servers: ServerFacts[] = [];
  for (let turn = 0; turn < instances.size + sessionsMore && servers.length < instances.size; turn += 1) {
    const session = sessionOf(turn);
    const one = await probeOnce(server, { ...options, session });
    const { instance = '' } = one;
    if (!(await isAloneIn(session, server, { ...options, instance }))) {
      const { contextTokens, tokenizer } = found;
      const any = definedOf({ contextTokens, tokenizer: tokenizer === 'different' ? tokenizer : undefined });
      return toSeveral(
        { ...found, logprobsReason: mixedReason },
        Array.from(instances, (each) => ({ ...any, instance: each })),
      );
    }
    if (servers.every((other) => other.instance !== instance)) servers.push(factsOf(one));
  }
  const unasked = [...instances].filter((each) => servers.every(({ instance }) => instance !== each));
  return toSeveral(found, [...servers, ...unasked.map((instance) => ({ instance }))]);
}

interface Seen {
  readonly found: BackendProbe;
  /** The starts of servers that answered. */
  readonly seen: readonly string[];
}

async function probeOnce(server: AskedServer, options: ServerProbeOptions): Promise<BackendProbe> {
  const agent = new Agent();
  const openedBy = { dispatcher: agent, ...definedOf({ session: options.session }) };
  try {
    const found = await within({ timeoutMs: joinTimeoutMs, ...options }, async (signal) => {
      const ask = openAsk(server, { ...openedBy, signal });
      const askSoon: AskSoon = (path) => within({ ...options, signal, timeoutMs: configTimeoutMs }, () => ask('GET', path));
      const path = healthPathOf(server.dialect);
      const { status } = await ask('GET', path);
      if (status >= 500 || status === 401) throw fail(`GET ${server.url}${path} answered ${status}`);
      const instance = await readInstance(server, ask).catch(() => undefined); // too long, or closed to us
      const [facts, route, logprobsMode, tokenizer] = await Promise.all([
        readFacts(server, { ask, askSoon }),
        options.isBrief ? {} : findRoute(server, ask),
        readLogprobsMode(server, askSoon),
        options.isBrief ? {} : checkTokenizer(options.tokenizer, server, (path, body) => ask('POST', path, body)),
      ]);
      return { ...facts, ...route, ...tokenizer, ...definedOf({ instance, logprobsMode }) };
    });
    const isOpen = server.dialect.startsWith('vllm') && found.logprobsMode === undefined;
    const sample = (signal: AbortSignal) => sampleOne(found, openAsk(server, { ...openedBy, signal }));
    // A busy server may take longer: the mode stays unknown, which the view says, and it is asked again.
    const ask = () =>
      within({ ...options, timeoutMs: sampleTimeoutMs }, sample).catch((error) => ({ logprobsReason: messageOf(error).slice(0, 300) }));
    const seen = !isOpen ? {} : options.isPaused ? { logprobsReason: 'the policy was paused when it was asked' } : await ask();
    return { ...seen, ...found, atMs: options.clock.now() };
  } finally {
    await agent.destroy();
  }
}

/** A GET that is given up before the others. */
type AskSoon = (path: string) => Promise<ServerAnswer>;

/** An empty request is refused by any route that is there. The route is named only if it is not the first choice. */
async function findRoute({ dialect }: AskedServer, ask: Ask): Promise<Pick<BackendProbe, 'route' | 'routeReason'>> {
  let routeReason: string | undefined;
  for (const path of tokenRoutes[dialect]) {
    const answer = await ask('POST', path);
    if (answer.status === 401) throw fail(describeRefusal(path, answer));
    if (!isWithoutRoute(answer.status)) return routeReason === undefined ? {} : { route: path, routeReason };
    routeReason ??= describeRefusal(path, answer);
  }
  throw fail(routeReason ?? `${dialect} has no token route`);
}

const card = z.looseObject({
  id: z.string(),
  owned_by: z.string().optional(),
  root: z.string().nullish(),
  max_model_len: z.int().positive().nullish(),
  meta: z.looseObject({ n_params: z.number().optional(), size: z.number().optional(), ftype: z.string().optional() }).nullish(),
});
const models = z.looseObject({ data: z.array(card) });
const versionReply = z.looseObject({ version: z.string() });
const sglangInfo = versionReply.extend({
  dp_size: z.int().positive().optional().catch(undefined),
  max_total_num_tokens: z.int().positive().optional().catch(undefined),
  disable_radix_cache: z.boolean().optional().catch(undefined),
});
/** Of sglang-router: it has none of SGLang's routes that tell its servers apart, and takes no token ids on those of vLLM. */
const sglangRouterPath = '/get_server_info';
const sglangRouter = z.looseObject({ router_manager: z.literal(true), workers_count: z.int().optional() });
const props = z.looseObject({
  build_info: z.string().optional(),
  model_path: z.string().optional(),
  default_generation_settings: z.looseObject({ n_ctx: z.int().positive().optional() }).optional(),
});

type Facts = Pick<
  BackendProbe,
  'engine' | 'version' | 'model' | 'root' | 'contextTokens' | 'fingerprint' | 'ranks' | 'cacheTokens' | 'isSeveral'
>;

/** Whatever the server reports; a route that it does not have leaves its facts out. */
async function readFacts(
  { dialect, model }: AskedServer,
  { ask, askSoon }: { readonly ask: Ask; readonly askSoon: AskSoon },
): Promise<Facts> {
  const read = async <T>(path: string, schema: z.ZodType<T>): Promise<T | undefined> => parseAnswer(schema, await ask('GET', path));
  const cards = (await read('/v1/models', models))?.data ?? [];
  const found = cards.find(({ id }) => id === model) ?? cards[0];
  // The other engines ignore the name of the model.
  if (model !== undefined && found && found.id !== model && dialect.startsWith('vllm'))
    throw fail(`it serves ${cards.map(({ id }) => JSON.stringify(id)).join(', ')}, not the model ${JSON.stringify(model)}`);
  const root = found?.root ?? undefined;
  const common = { engine: found?.owned_by, model: found?.id, root, contextTokens: found?.max_model_len ?? undefined };
  if (dialect === 'llamacpp') {
    const { build_info: version, model_path, default_generation_settings: settings } = (await read('/props', props)) ?? {};
    const { n_params = '', size = '', ftype = '' } = found?.meta ?? {};
    const fingerprint = found?.meta ? `${n_params}/${size}/${ftype}` : undefined;
    return definedOf({ ...common, version, root: model_path, contextTokens: settings?.n_ctx, fingerprint });
  }
  if (dialect === 'sglang') {
    const info = await read('/server_info', sglangInfo);
    const { workers_count: behind } = info ? {} : ((await read(sglangRouterPath, sglangRouter)) ?? {});
    // It answers for its servers, and does not say which of them answers.
    if (behind !== undefined) return definedOf({ contextTokens: common.contextTokens, isSeveral: behind > 1 ? true : undefined });
    const cacheTokens = info?.disable_radix_cache ? undefined : info?.max_total_num_tokens;
    return definedOf({ ...common, version: info?.version, ranks: info?.dp_size, cacheTokens });
  }
  const info = await read('/version', versionReply);
  return definedOf({ ...common, version: info?.version, ...(await readEngines(askSoon)) });
}

const dialectsOf: Readonly<Record<string, readonly Dialect[]>> = {
  vllm: ['vllm', 'vllm-completions'],
  sglang: ['sglang'],
  llamacpp: ['llamacpp'],
};

/** What a server that joins says about itself. It may be of another kind than its dialect says. */
export async function probeNewServer(server: AskedServer, options: ServerProbeOptions): Promise<BackendProbe> {
  await checkEngine(server, options);
  return await probeServer(server, options);
}

/**
 * Throws with the right dialect in `details` if the server is of another kind: it would fail all other questions for reasons that mislead.
 * The dialects prorl and chat are spoken by any.
 */
export async function checkEngine(server: AskedServer, options: Pick<ServerProbeOptions, 'clock' | 'signal'>): Promise<void> {
  const dispatcher = new Agent();
  try {
    const engine = await within({ ...options, timeoutMs: joinTimeoutMs }, (signal) => readEngine(openAsk(server, { signal, dispatcher })));
    const [right, ...others] = dialectsOf[engine] ?? [];
    if (right === undefined || [right, ...others, 'prorl', 'chat'].includes(server.dialect)) return;
    const message = `its server is ${engine}, which the dialect ${server.dialect} cannot call; add it again without a dialect, or with ${right}`;
    throw new RolloutError('backend-failed', message, { details: { dialect: right } });
  } finally {
    await dispatcher.destroy();
  }
}

async function readEngine(ask: Ask): Promise<string> {
  const answer = await ask('GET', '/v1/models');
  if (answer.status === 404 && errorBody.safeParse(tryJson(answer.text)).success)
    throw fail('this is the address of a Millrace service; add that of an LLM server, such as vLLM');
  const engine = parseAnswer(models, answer)?.data[0]?.owned_by ?? '';
  if (dialectsOf[engine]) return engine;
  return parseAnswer(sglangRouter, await ask('GET', sglangRouterPath)) ? 'sglang' : engine;
}

/** vLLM reports its data-parallel ranks, and how much each of them caches, only in its metrics. */
async function readEngines(askSoon: AskSoon): Promise<Pick<Facts, 'ranks' | 'cacheTokens'>> {
  const { status, text } = await askSoon('/metrics').catch(() => ({ status: 0, text: '' })); // too long, or closed to us
  if (status !== 200) return {};
  const engines = new Set(Array.from(text.matchAll(/^vllm:num_requests_running\{[^}]*engine="(\d+)"/gm), ([, engine]) => engine));
  const sizes = Array.from(text.matchAll(/^vllm:cache_config_info\{([^}]*)\}/gm), ([, labels = '']) => readCacheTokens(labels));
  const cacheTokens = Math.min(...sizes.filter((size) => size !== undefined));
  return { ...(engines.size > 0 ? { ranks: engines.size } : {}), ...(Number.isFinite(cacheTokens) ? { cacheTokens } : {}) };
}

/** Versions that do not say it themselves have blocks; a cache that is not used for prefixes holds none. */
function readCacheTokens(labels: string): number | undefined {
  const read = (name: string) => new RegExp(`(?:^|,)${name}="([^"]*)"`).exec(labels)?.[1];
  if (read('enable_prefix_caching') === 'False') return undefined;
  const tokens = Number(read('kv_cache_size_tokens') ?? 'None') || Number(read('num_gpu_blocks')) * Number(read('block_size'));
  return Number.isSafeInteger(tokens) && tokens > 0 ? tokens : undefined;
}

const vllmConfig = z.looseObject({ vllm_config: z.looseObject({ model_config: z.looseObject({ logprobs_mode: z.string() }) }) });
const vllmModes: Readonly<Record<string, LogprobsMode>> = { raw_logprobs: 'raw', processed_logprobs: 'processed' };

/** Only vLLM has a choice, and it reports it only in its development mode. Throws if its values are no logprobs at all. */
async function readLogprobsMode({ dialect }: AskedServer, get: AskSoon): Promise<LogprobsMode | undefined> {
  if (!dialect.startsWith('vllm')) return undefined;
  const answer = await get('/server_info?config_format=json').catch(() => undefined); // it stays unknown, which the view says
  const name = answer && parseAnswer(vllmConfig, answer)?.vllm_config.model_config.logprobs_mode;
  if (name === undefined) return undefined;
  const mode = vllmModes[name];
  if (mode === undefined) throw fail(`it returns ${name} instead of logprobs; start vLLM with --logprobs-mode processed_logprobs`);
  return mode;
}

const completion = z.looseObject({
  system_fingerprint: z.string().nullish(),
  choices: z.tuple([z.looseObject({ logprobs: z.looseObject({ token_logprobs: z.tuple([z.number()]) }) })]),
});

/** With top_k 1, the processed logprob of the only token left is 0, and the raw one is not. */
async function sampleOne({ model }: Facts, ask: Ask): Promise<Pick<BackendProbe, 'logprobsMode' | 'logprobsReason' | 'fingerprint'>> {
  const body = { model, request_id: logprobsProbeId, prompt: [1], max_tokens: 1, temperature: 1, top_k: 1, logprobs: 1 };
  const answer = await ask('POST', completionsRoute.path, body);
  const reply = parseAnswer(completion, answer);
  if (!reply) return { logprobsReason: `POST ${completionsRoute.path} answered ${answer.status}: ${answer.text.slice(0, 200)}` };
  const [logprob] = reply.choices[0].logprobs.token_logprobs;
  const logprobsMode = logprob === 0 ? 'processed' : 'raw';
  return { logprobsMode, ...definedOf({ fingerprint: reply.system_fingerprint ?? undefined }) };
}

function fail(message: string): RolloutError {
  return new RolloutError('backend-failed', message);
}
