// vLLM's two token routes on the wire: what is sent before and after the prompt's ids, and what a reply must be to be believed.
// A reply whose ids, logprobs and counts do not fit together exactly is refused as `backend-bad-reply`.

import { type FinishReason, RolloutError } from '@millrace/protocol';
import { z } from 'zod';
import type { GenerateRequest, Generation } from './backend.ts';

export interface Route {
  readonly path: string;
  /** The JSON around the prompt's ids. */
  around(request: GenerateRequest, model: string | undefined): { readonly head: string; readonly tail: string };
  parse(text: string, request: GenerateRequest): Generation;
}

export const generateRoute: Route = {
  path: '/inference/v1/generate',
  around(request, model) {
    const { requestId } = request;
    const params = { ...samplingParams(request), detokenize: false };
    return {
      head: `${openObject({ request_id: requestId, model })}"token_ids":[`,
      tail: `],"sampling_params":${JSON.stringify(params)},"stream":false}`,
    };
  },
  parse(text, request) {
    const reply = parseReply(generateReply, text);
    const { token_ids, logprobs, finish_reason } = onlyChoice(reply.choices);
    return toGeneration(request, {
      tokenIds: token_ids,
      logprobs: (logprobs?.content ?? []).map(chatLogprob),
      finish_reason,
      usage: reply.usage,
    });
  },
};

export const completionsRoute: Route = {
  path: '/v1/completions',
  around(request, model) {
    const params = { ...samplingParams(request), return_token_ids: true, stream: false };
    return { head: `${openObject({ request_id: request.requestId, model })}"prompt":[`, tail: `],${JSON.stringify(params).slice(1)}` };
  },
  parse(text, request) {
    const reply = parseReply(completionsReply, text);
    const { token_ids, logprobs, finish_reason } = onlyChoice(reply.choices);
    return toGeneration(request, { tokenIds: token_ids, logprobs: logprobs?.token_logprobs ?? [], finish_reason, usage: reply.usage });
  },
};

/** A generous bound: what the longest honest reply to this request could take. Completions echo the prompt's ids. */
export function maxReplyBytes({ promptTokens, maxTokens }: GenerateRequest): number {
  return (1 << 20) + 16 * promptTokens + 1024 * maxTokens;
}

/** Servers have defaults of their own (16 tokens, the model's generation config), so every field is always sent. */
function samplingParams({ sampling, maxTokens, stopTokenIds }: GenerateRequest): Record<string, unknown> {
  const { seed, ...fields } = sampling;
  return {
    ...fields,
    max_tokens: maxTokens,
    ...(seed === undefined ? {} : { seed }),
    n: 1,
    min_tokens: 0,
    stop_token_ids: stopTokenIds,
    ignore_eos: false,
    skip_special_tokens: false,
    logprobs: 0,
  };
}

function openObject(fields: Record<string, string | undefined>): string {
  const json = JSON.stringify(fields);
  return json === '{}' ? json.slice(0, -1) : `${json.slice(0, -1)},`;
}

// The arrays are checked by hand below: a schema run on each of thousands of entries would cost more than all else in a turn.
const array = z.custom<readonly unknown[]>(Array.isArray, 'not an array');
const usage = z.looseObject({
  prompt_tokens: z.int().nullish(),
  prompt_tokens_details: z.looseObject({ cached_tokens: z.int().nullish() }).nullish(),
});
const choice = z.looseObject({ token_ids: array, finish_reason: z.string().nullish() });
const generateReply = z.looseObject({
  choices: z.array(choice.extend({ logprobs: z.looseObject({ content: array.nullish() }).nullish() })),
  usage: usage.nullish(),
});
const completionsReply = z.looseObject({
  choices: z.array(choice.extend({ logprobs: z.looseObject({ token_logprobs: array.nullish() }).nullish() })),
  usage: usage.nullish(),
});

function parseReply<T>(schema: z.ZodType<T>, text: string): T {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    throw new RolloutError('backend-failed', `the reply is not JSON: ${text.slice(0, 200)}`, { cause: error });
  }
  const parsed = schema.safeParse(json);
  if (!parsed.success) throw refuse(z.prettifyError(parsed.error));
  return parsed.data;
}

function onlyChoice<T>(choices: readonly T[]): T {
  const [first] = choices;
  if (first === undefined || choices.length > 1) throw refuse(`${choices.length} choices where one was asked for`);
  return first;
}

/** The entry names its token as `token_id:<id>` or by its text; the logprob is all that is taken. */
function chatLogprob(entry: unknown): unknown {
  return typeof entry === 'object' && entry !== null && 'logprob' in entry ? entry.logprob : undefined;
}

interface RawGeneration {
  readonly tokenIds: readonly unknown[];
  readonly logprobs: readonly unknown[];
  readonly finish_reason?: string | null | undefined;
  readonly usage?: z.infer<typeof usage> | null | undefined;
}

function toGeneration({ promptTokens, maxTokens }: GenerateRequest, raw: RawGeneration): Generation {
  const finishReason = toFinishReason(raw.finish_reason);
  const { length } = raw.tokenIds;
  if (length > maxTokens) throw refuse(`${length} tokens where at most ${maxTokens} were asked for`);
  if (length === 0 && finishReason !== 'abort') throw refuse('no tokens');
  if (raw.logprobs.length !== length) throw refuse(`${raw.logprobs.length} logprobs for ${length} tokens`);
  const seen = raw.usage?.prompt_tokens;
  if (typeof seen === 'number' && seen !== promptTokens) throw refuse(`a prompt of ${seen} tokens, not the ${promptTokens} that were sent`);
  const tokenIds = new Int32Array(length);
  const logprobs = new Float32Array(length);
  for (let i = 0; i < length; i++) {
    tokenIds[i] = toTokenId(raw.tokenIds[i]);
    logprobs[i] = toLogprob(raw.logprobs[i]);
  }
  const cached = raw.usage?.prompt_tokens_details?.cached_tokens;
  return { tokenIds, logprobs, finishReason, ...(typeof cached === 'number' ? { cachedTokens: cached } : {}) };
}

function toTokenId(value: unknown): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 0x7fff_ffff) return value;
  throw refuse(`${JSON.stringify(value)} as a token id`);
}

/** vLLM writes -9999 where it has no logprob. */
function toLogprob(value: unknown): number {
  if (typeof value === 'number' && Number.isFinite(value) && value > -9999) return value;
  throw refuse(`${JSON.stringify(value)} as a logprob`);
}

function toFinishReason(reason: string | null | undefined): FinishReason {
  switch (reason) {
    case 'stop':
    case 'length':
    case 'abort':
      return reason;
    case 'repetition': // the server cut it off: the policy did not end its turn
      return 'length';
    default:
      throw refuse(`${JSON.stringify(reason)} as the finish reason`);
  }
}

function refuse(what: string): RolloutError {
  return new RolloutError('backend-bad-reply', `the backend answered with ${what}`);
}
