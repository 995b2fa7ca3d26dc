// The fake of a server that ProRL Agent's trainers start: FastAPI with one route, whose faults are answered by Starlette.

import { type FakeDialect, isRecord, isTokenIds, type Json } from './wire.ts';

/** What vLLM's SamplingParams takes, of the fields that callers send; any other name is a TypeError there. */
const known: ReadonlySet<string> = new Set([
  ...['n', 'presence_penalty', 'frequency_penalty', 'repetition_penalty', 'temperature', 'top_p', 'top_k', 'min_p', 'seed'],
  ...['stop', 'stop_token_ids', 'ignore_eos', 'max_tokens', 'min_tokens', 'logprobs', 'detokenize', 'skip_special_tokens'],
]);

export const promptIdsGenerate: FakeDialect = {
  engine: 'prorl',
  path: '/generate',
  parse(body, headers, { contextTokens }) {
    if (!isRecord(body)) return internal;
    const { prompt_ids: ids, ...sampling } = body;
    if (!isTokenIds(ids) || Object.keys(sampling).some((name) => !known.has(name)) || ids.length >= contextTokens) return internal;
    const maxTokens = typeof sampling.max_tokens === 'number' ? sampling.max_tokens : 16;
    return { route: 'prorl', id: undefined, promptIds: Int32Array.from(ids), maxTokens, isStream: false, sampling, options: {}, headers };
  },
  reply: (_request, { tokenIds, logprobs }) => ({ response_ids: tokenIds, logprobs: logprobs ?? null }),
  events: () => [],
  lastLine: '',
  withoutOutput: ({ logprobs }) => ({ logprobs }),
  error: (_status, detail): Json => ({ detail }),
};

/** An exception in its handler, for which Starlette answers without a reason. */
const internal = { status: 500, body: { detail: 'Internal Server Error' } };
