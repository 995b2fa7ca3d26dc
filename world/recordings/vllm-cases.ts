// What is recorded of vLLM: each case sends one or a few requests and returns what came back. Files group the cases by theme.

import type { RecordedExchange } from '@millrace/testkit';
import type { Engine } from '../engines/engine-process.ts';
import { open, pause, send } from './exchange.ts';
import {
  type AskOptions,
  ask,
  askLong,
  engineId,
  get,
  nearlyFullPrompt,
  overlongPrompt,
  post,
  promptIds,
  unknownId,
  type VllmRoute,
} from './vllm-requests.ts';

export interface Case {
  readonly name: string;
  readonly says: string;
  /** The reply differs from run to run, so that it is recorded but not compared. */
  readonly varies?: true;
  run(engine: Engine): Promise<readonly RecordedExchange[]>;
}

const one = (name: string, says: string, request: Parameters<typeof send>[1]): Case => ({
  name,
  says,
  run: async ({ url }) => [await send(url, request)],
});

/** Good replies of one route. */
export function goodCases(route: VllmRoute): readonly Case[] {
  const asked = (name: string, says: string, options: AskOptions = {}) => one(`${route}-${name}`, says, ask(route, options));
  return [
    asked('greedy', 'A short greedy reply that ends with its stop token.', { sampling: { max_tokens: 16 } }),
    asked('length', 'Cut at max_tokens.', { sampling: { max_tokens: 3 } }),
    asked('stream', 'The same as a stream: one event for each token, then the usage.', { stream: true, sampling: { max_tokens: 16 } }),
    asked('top-logprobs', 'With the two likeliest tokens of each place.', { sampling: { logprobs: 2, max_tokens: 2 } }),
    asked('no-logprobs', 'Without logprobs.', { sampling: { logprobs: null, max_tokens: 2 } }),
    asked('prompt-logprobs', 'With the logprobs of the prompt.', {
      sampling: { prompt_logprobs: 0, max_tokens: 1 },
      prompt: promptIds.slice(0, 6),
    }),
    asked('token-ids', 'With the prompt echoed as token ids.', { extra: { return_token_ids: true }, sampling: { max_tokens: 2 } }),
    asked('seeded', 'Sampled with a seed, temperature, top-p, top-k, min-p and penalties.', {
      sampling: { seed: 7, temperature: 0.8, top_p: 0.9, top_k: 20, min_p: 0.01, repetition_penalty: 1.1, max_tokens: 4 },
    }),
    asked('no-model', 'Without the name of a model.', { model: null, sampling: { max_tokens: 2 } }),
    asked('default-length', 'Without max_tokens, and a stop token that comes first.', { sampling: { max_tokens: undefined } }),
  ];
}

/** What is wrong with a request, and how the route says so; `Stream` cases ask for a stream. */
export function errorCases(route: VllmRoute): readonly Case[] {
  const wrongs: readonly (readonly [string, string, AskOptions])[] = [
    ['overlong-prompt', 'The prompt alone is longer than the context.', { prompt: overlongPrompt }],
    ['overlong-sum', 'The prompt fits, but not with max_tokens.', { prompt: nearlyFullPrompt, sampling: { max_tokens: 100 } }],
    ['bad-temperature', 'A temperature below 0.', { sampling: { temperature: -1 } }],
    ['bad-top-p', 'A top_p above 1.', { sampling: { top_p: 2 } }],
    ['bad-type', 'max_tokens that is no number.', { sampling: { max_tokens: 'many' } }],
    ['too-many-logprobs', 'More logprobs than the server gives.', { sampling: { logprobs: 1000 } }],
    ['empty-prompt', 'No token at all.', { prompt: [] }],
    ['unknown-token', "A token id outside of the model's vocabulary.", { prompt: [...promptIds, unknownId] }],
    ['unknown-model', 'A model that is not served.', { model: 'other' }],
  ];
  return wrongs.flatMap(([name, says, options]) => [
    one(`${route}-${name}`, says, ask(route, options)),
    one(`${route}-${name}-stream`, `${says} Asked for as a stream.`, ask(route, { ...options, stream: true })),
  ]);
}

/** A request that ends before its time. */
export function abortCases(route: VllmRoute, abortPath: string): readonly Case[] {
  const tag = abortPath === '/abort_requests' ? 'dev-abort' : 'abort';
  const abort = (url: string, id: string, sent = 'after the first event') =>
    send(url, post(abortPath, { request_ids: [engineId(route, id)] }), { sent });
  return [
    {
      name: `${route}-${tag}-stream`,
      says: `A stream aborted with ${abortPath} after its first token.`,
      async run({ url }) {
        const call = open(url, askLong(route, { id: `${tag}-s`, stream: true }));
        await call.begun;
        const aborted = await abort(url, `${tag}-s`);
        return [trimStream(await call.done), aborted];
      },
    },
    {
      name: `${route}-${tag}-whole`,
      says: `A request without a stream, aborted with ${abortPath} after some tokens: the reply has them.`,
      async run({ url }) {
        const before = await countSampled(url);
        const call = open(url, askLong(route, { id: `${tag}-w` }));
        while ((await countSampled(url)) < before + 3) await pause(20);
        const aborted = await abort(url, `${tag}-w`, 'after three tokens');
        return [await call.done, aborted];
      },
    },
    {
      name: `${route}-${tag}-early`,
      says: `A request without a stream, aborted with ${abortPath} before its first token.`,
      varies: true, // on a busy machine its first tokens come before the abort
      async run({ url }) {
        const call = open(url, askLong(route, { id: `${tag}-e`, prompt: nearlyFullPrompt }));
        while ((await readMetric(url, 'num_requests_running')) === 0) await pause(20);
        const aborted = await abort(url, `${tag}-e`, 'during the prefill');
        return [await call.done, aborted];
      },
    },
    {
      name: `${route}-${tag}-unknown`,
      says: `${abortPath} for an id that the engine does not know.`,
      run: async ({ url }) => [await send(url, post(abortPath, { request_ids: ['no-such-request'] }))],
    },
    { ...one(`${route}-${tag}-no-ids`, `${abortPath} without ids.`, post(abortPath, {})) },
  ];
}

/** A client that goes away, before or after the first token. */
export function disconnectCases(route: VllmRoute): readonly Case[] {
  return [
    {
      name: `${route}-disconnect`,
      says: 'The client closes the connection after the second event; the engine stops sampling.',
      async run({ url }) {
        const call = open(url, askLong(route, { id: 'gone-1', stream: true }), { leaveAfter: 2 });
        return [await call.done, await send(url, get('/load'), { sent: 'right after' })];
      },
    },
    {
      name: `${route}-disconnect-whole`,
      says: 'The client closes the connection before the reply.',
      run: async ({ url }) => [await send(url, askLong(route, { id: 'gone-2' }), { quietMs: 500 })],
    },
  ];
}

/** How a route behaves while the engine is paused; needs `VLLM_SERVER_DEV_MODE=1`. */
export function pauseCases(route: VllmRoute): readonly Case[] {
  return [
    {
      name: `${route}-pause-abort`,
      says: 'A pause that aborts ends a running stream; a request sent while paused waits for the resume.',
      async run({ url }) {
        const call = open(url, askLong(route, { id: 'pause-1', stream: true }));
        await call.begun;
        const paused = await send(url, post('/pause?mode=abort'), { sent: 'after the first event' });
        const asked = await send(url, get('/is_paused'));
        const waiting = await send(url, ask(route, { id: 'pause-2' }), { quietMs: 1500 });
        const resumed = await send(url, post('/resume'));
        return [trimStream(await call.done), paused, asked, waiting, resumed, await send(url, get('/is_paused'))];
      },
    },
    {
      name: `${route}-pause-wait`,
      says: 'A pause that waits returns when the running request has ended.',
      async run({ url }) {
        const call = open(
          url,
          ask(route, { id: 'pause-3', stream: true, sampling: { max_tokens: 20, ignore_eos: true, stop_token_ids: [] } }),
        );
        await call.begun;
        const paused = await send(url, post('/pause?mode=wait'), { sent: 'after the first event' });
        const resumed = await send(url, post('/resume'));
        return [trimStream(await call.done), paused, resumed];
      },
    },
    {
      name: `${route}-pause-keep`,
      says: 'A pause that keeps holds a running request; the resume continues it, and the reply names both weight versions.',
      async run({ url }) {
        const call = open(
          url,
          ask(route, { id: 'pause-4', stream: true, sampling: { max_tokens: 40, ignore_eos: true, stop_token_ids: [] } }),
        );
        await call.begun;
        const paused = await send(url, post('/pause?mode=keep'), { sent: 'after the first event' });
        const named = await send(url, post('/update_weight_version', { new_version: 'step-7' }));
        const info = await send(url, get('/weight_info'));
        const resumed = await send(url, post('/resume'));
        const kept = trimStream(await call.done);
        return [kept, paused, named, info, resumed, await send(url, post('/update_weight_version', { new_version: 'default' }))];
      },
    },
  ];
}

export const devCases: readonly Case[] = [
  one('pause-bad-mode', 'A pause with a mode that there is not.', post('/pause?mode=stop')),
  one('reset-prefix-cache', 'The prefix cache is dropped.', post('/reset_prefix_cache')),
  one('weight-info', 'Which weights are loaded.', get('/weight_info')),
  one('world-size', 'How many processes hold the weights.', get('/get_world_size')),
  one('reload-weights', 'The weights are read again from disk.', post('/collective_rpc', { method: 'reload_weights' })),
  one('collective-rpc-unknown', 'A method that the workers do not have.', post('/collective_rpc', { method: 'no_such_method' })),
  one('is-sleeping', 'Whether the engine has released its memory.', get('/is_sleeping')),
];

export const infoCases: readonly Case[] = [
  one('health', 'The health check.', get('/health')),
  one('version', 'The version.', get('/version')),
  one('models', 'The models, with the context length as max_model_len.', get('/v1/models')),
  one(
    'tokenize',
    'Text to token ids.',
    post('/tokenize', { prompt: 'Hello <|im_end|>', add_special_tokens: false, return_token_strs: true }),
  ),
  one('tokenize-messages', 'Messages to token ids.', post('/tokenize', { messages: [{ role: 'user', content: 'Hello' }] })),
  one('detokenize', 'Token ids to text.', post('/detokenize', { tokens: promptIds.slice(0, 4) })),
  one('detokenize-unknown', 'A token id outside of the vocabulary, as text.', post('/detokenize', { tokens: [unknownId] })),
  one('tokenizer-info', 'The tokenizer, which is not shown by default.', get('/tokenizer_info')),
  one('unknown-route', 'A route that there is not.', post('/v1/no-such-route', {})),
  one('v1-twice', 'The address with /v1 where it does not belong.', post('/v1/v1/completions', {})),
  one('v1-generate', 'The token route under an address that ends in /v1.', post('/v1/inference/v1/generate', {})),
  one('wrong-method', 'GET where POST is needed.', get('/v1/completions')),
  one('not-json', 'A body that is no object.', post('/v1/completions', 'x')),
];

/** What a vLLM says that was started without extra flags. */
export const plainCases: readonly Case[] = [
  one('plain-generate', 'The token route is refused by default.', ask('generate')),
  one('plain-generate-stream', 'The token route is refused by default, also for a stream.', ask('generate', { stream: true })),
  one('plain-abort', 'The abort route is refused by default.', post('/inference/v1/abort_requests', { request_ids: ['x'] })),
  one('plain-completions', 'The other token route works.', ask('completions', { sampling: { max_tokens: 4 } })),
  one('plain-pause', 'The routes for weights are not there.', post('/pause')),
  one('plain-weight-info', 'The routes for weights are not there.', get('/weight_info')),
];

/** A vLLM with room for two requests at a time. */
export const queueCases: readonly Case[] = (['completions', 'generate'] as const).map((route) => ({
  name: `${route}-queue-full`,
  says: 'More requests than --max-num-queued-reqs allows: 503 without Retry-After.',
  async run({ url }) {
    const calls = ['first', 'second'].map((id) => open(url, askLong(route, { id, stream: true }), { leaveAfter: 12 }));
    await Promise.all(calls.map(({ begun }) => begun));
    const whole = await send(url, ask(route, { id: 'third' }), { sent: 'while two other requests run' });
    const stream = await send(url, ask(route, { id: 'fourth', stream: true }), { sent: 'while two other requests run' });
    await Promise.all(calls.map(({ done }) => done));
    return [whole, stream];
  },
}));

/** Ends the engine. The stream ends at once with an error, or stays silent until the client leaves. */
export const shutdownCases: readonly Case[] = [
  {
    name: 'completions-sigterm',
    says: 'SIGTERM while a stream and a request without one run.',
    varies: true,
    async run(engine) {
      const call = open(engine.url, askLong('completions', { id: 'last', stream: true }));
      await call.begun;
      const whole = open(engine.url, askLong('completions', { id: 'last-whole' }));
      await pause(300);
      engine.signal('SIGTERM');
      const ended = [trimStream(await call.done), await whole.done];
      await engine.exited();
      return [...ended, await send(engine.url, get('/health'), { sent: 'after the process has ended' })];
    },
  },
];

/** Ends the engine: its worker process dies, as when memory runs out. */
export const crashCases: readonly Case[] = [
  {
    name: 'completions-crash',
    says: 'The process that holds the weights is killed while a stream and a request without one run.',
    varies: true, // an error, or a connection that is reset first
    async run(engine) {
      const call = open(engine.url, askLong('completions', { id: 'last', stream: true }));
      await call.begun;
      const whole = open(engine.url, askLong('completions', { id: 'last-whole' }));
      await pause(300);
      engine.signalChildren('SIGKILL');
      const ended = [trimStream(await call.done), await whole.done];
      await engine.exited();
      return [...ended, await send(engine.url, get('/health'), { sent: 'after the process has ended' })];
    },
  },
];

/** A long stream, without most of its events that are alike. */
function trimStream(exchange: RecordedExchange): RecordedExchange {
  const events = exchange.reply?.events;
  if (!exchange.reply || !events || events.length <= 8) return exchange;
  return { ...exchange, reply: { ...exchange.reply, events: [...events.slice(0, 3), ...events.slice(-4)] } };
}

const countSampled = (url: string) => readMetric(url, 'generation_tokens_total');

async function readMetric(url: string, name: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  return Number(new RegExp(`^vllm:${name}\\{.*\\} (\\S+)$`, 'm').exec(text)?.[1] ?? 0);
}
