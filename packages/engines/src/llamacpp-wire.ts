// llama.cpp's /completion on the wire. Its list of probabilities may be shorter than its list of tokens, so the two are compared
// id by id, and a token without a logprob refuses the whole reply. It is never streamed: the stream omits the same tokens.

import { definedOf, type FinishReason, RolloutError, type Sampling } from '@millrace/protocol';
import { z } from 'zod';
import type { GenerateRequest, Generation } from './backend.ts';
import { choiceToGrammar, refuseFields } from './params/sampling-fields.ts';
import { refuse } from './reply/bad-reply.ts';
import { array, parseReply, type TokenRoute, toGeneration } from './wire.ts';

export const llamacppRoute: TokenRoute = {
  path: '/completion',
  around(request, model) {
    if (request.sampling.routed_experts) throw new RolloutError('backend-refused', 'llama.cpp does not report routed experts');
    if (request.adapter !== undefined)
      throw new RolloutError('backend-failed', `llama.cpp does not select LoRA adapters by name, so it cannot serve ${request.adapter}`);
    if (request.sampling.sampling_mask) throw new RolloutError('backend-refused', 'llama.cpp does not report sampling masks');
    refuseFields(request.sampling, 'llama.cpp', {
      min_tokens: 'it has no minimum',
      'structured_outputs.regex': 'it has no regular expressions; write a grammar',
    });
    const params = {
      ...samplingParams(request),
      ...definedOf({ model }),
      n_probs: 1,
      post_sampling_probs: false,
      return_tokens: true,
      cache_prompt: true,
      // Without it every reply contains the whole prompt as text.
      response_fields: Object.keys(llamacppReply.shape),
      stream: false,
    };
    return { head: '{"prompt":[', tail: `],${JSON.stringify(params).slice(1)}` };
  },
  parse(text, request) {
    const reply = parseReply(llamacppReply, text);
    const { tokens, tokens_evaluated, tokens_cached, truncated } = reply;
    // `truncated` is also set for a context that is merely full. A shifted one has fewer tokens than were put in.
    if (truncated && typeof tokens_cached === 'number' && tokens_cached < request.promptTokens + tokens.length - 1)
      throw refuse('tokens sampled from a shifted context; start llama-server without --context-shift');
    const generation = toGeneration(request, {
      tokenIds: tokens,
      logprobs: reply.completion_probabilities ? alignLogprobs(tokens, reply.completion_probabilities) : [],
      finishReason: toFinishReason(reply.stop_type),
      promptTokens: tokens_evaluated,
      cachedTokens: reply.timings?.cache_n,
    });
    return cutAtStop(generation, request, reply.completion_probabilities ?? []);
  },
};

/**
 * Only the samplers that the request asks for, in llama.cpp's own order. Samplers that its command line may have enabled are
 * disabled by name.
 */
function samplingParams({ sampling, promptTokens, maxTokens }: GenerateRequest): Record<string, unknown> {
  const { temperature, top_k, top_p, min_p, repetition_penalty, presence_penalty, frequency_penalty, seed } = sampling;
  const wanted = {
    penalties: repetition_penalty !== 1 || presence_penalty !== 0 || frequency_penalty !== 0,
    top_k: top_k > 0,
    top_p: top_p < 1,
    min_p: min_p > 0,
    temperature: true,
  };
  return {
    n_predict: maxTokens,
    samplers: Object.entries(wanted).flatMap(([name, isWanted]) => (isWanted ? [name] : [])),
    temperature,
    top_k,
    top_p,
    min_p,
    repeat_penalty: repetition_penalty,
    // The whole context, as on other servers. Newer servers refuse -1, which means the same.
    repeat_last_n: promptTokens + maxTokens,
    presence_penalty,
    frequency_penalty,
    seed: seed ?? -1,
    typical_p: 1,
    mirostat: 0,
    dynatemp_range: 0,
    dry_multiplier: 0,
    xtc_probability: 0,
    // With stop strings it leaves out the probabilities of the tokens that wrote one. The reply is cut there instead.
    stop: [],
    ignore_eos: false,
    logit_bias: Object.entries(sampling.logit_bias ?? {}).map(([id, bias]) => [Number(id), bias]),
    ...(sampling.structured_outputs && toConstraint(sampling.structured_outputs)),
  };
}

function toConstraint({ json, choice, grammar }: NonNullable<Sampling['structured_outputs']>): Record<string, unknown> {
  return definedOf({ json_schema: json, grammar: choice ? choiceToGrammar(choice) : grammar });
}

const llamacppReply = z.looseObject({
  tokens: array,
  completion_probabilities: array.nullish(),
  stop_type: z.string().nullish(),
  truncated: z.boolean().nullish(),
  tokens_evaluated: z.int().nullish(),
  tokens_cached: z.int().nullish(),
  timings: z.looseObject({ cache_n: z.int().nullish() }).nullish(),
});

/** llama.cpp reports no probability for a token after which its text ends inside a character. */
function alignLogprobs(tokens: readonly unknown[], entries: readonly unknown[]): unknown[] {
  const logprobs: unknown[] = [];
  for (const [at, id] of tokens.entries()) {
    const entry = entries[at];
    if (isEntry(entry) && entry.id === id) logprobs.push(entry.logprob);
    else if (entries.length >= tokens.length) throw refuse(`the logprob of another token than ${JSON.stringify(id)} at ${at}`);
    else {
      const counts = `${entries.length} of ${tokens.length} tokens have one`;
      // Not retryable: sampling until a reply happens to be complete would silently remove such tokens from the data, which
      // would then no longer be what the policy samples.
      throw new RolloutError(
        'backend-refused',
        `no logprob for token ${JSON.stringify(id)} at ${at} (${counts}): llama.cpp leaves out tokens that end inside a UTF-8 ` +
          'character. To train on such text, serve the model with vLLM or SGLang',
      );
    }
  }
  if (entries.length > tokens.length) throw refuse(`${entries.length} logprobs for ${tokens.length} tokens`);
  return logprobs;
}

function isEntry(entry: unknown): entry is { readonly id: unknown; readonly logprob: unknown } {
  return typeof entry === 'object' && entry !== null && 'id' in entry && 'logprob' in entry;
}

/** llama.cpp stops only at its model's own end tokens. Tokens after any other stop id, or after a stop string, are not part of the turn. */
function cutAtStop(
  generation: Generation,
  { stopTokenIds, sampling: { stop = [] } }: GenerateRequest,
  entries: readonly unknown[],
): Generation {
  const { tokenIds, logprobs } = generation;
  const end = tokenIds.findIndex((id) => stopTokenIds.includes(id)) + 1;
  const match = stop.length === 0 ? undefined : findStopString(entries, stop);
  const isString = match !== undefined && (end === 0 || match.tokens < end);
  if (end === 0 && !isString) return generation;
  const length = isString ? match.tokens : end;
  const stoppedBy = isString ? match.stop : (tokenIds[end - 1] ?? 0);
  return { ...generation, tokenIds: tokenIds.slice(0, length), logprobs: logprobs.slice(0, length), finishReason: 'stop', stoppedBy };
}

/** The first token with which the text has a stop string. A character may be spread over tokens, so their bytes are joined. */
function findStopString(
  entries: readonly unknown[],
  stop: readonly string[],
): { readonly tokens: number; readonly stop: string } | undefined {
  const bytes = entries.map((entry) => Buffer.from(Array.isArray(Object(entry).bytes) ? Object(entry).bytes : []));
  const text = Buffer.concat(bytes);
  const ends = stop.flatMap((one) => {
    const at = text.indexOf(one);
    return at < 0 ? [] : [{ stop: one, end: at + Buffer.byteLength(one) }];
  });
  const [first] = ends.toSorted((a, b) => a.end - b.end);
  if (!first) return undefined;
  let tokens = 0;
  for (let length = 0; length < first.end; tokens++) length += bytes[tokens]?.length ?? first.end;
  return { tokens, stop: first.stop };
}

function toFinishReason(type: string | null | undefined): FinishReason {
  switch (type) {
    case 'eos':
    case 'word':
      return 'stop';
    case 'limit':
      return 'length';
    default:
      throw refuse(`${JSON.stringify(type)} as the stop type`);
  }
}
