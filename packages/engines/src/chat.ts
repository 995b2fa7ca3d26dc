// Servers that have only OpenAI's chat route. They render the prompt themselves, so their reply must contain the ids of that prompt and of
// the answer: a prompt that is not exactly the ledger's is refused, and so is a reply without ids. Nothing is tokenised again.

import { definedOf, type FinishReason, type Message, RolloutError, stoppedBy } from '@millrace/protocol';
import { z } from 'zod';
import type { ChatPrompt, GenerateRequest } from './backend.ts';
import { chatPath } from './calls/server-health.ts';
import { refuseFields } from './params/sampling-fields.ts';
import { refuse } from './reply/bad-reply.ts';
import { array, parseReply, type TokenRoute, toGeneration } from './wire.ts';

export const chatRoute: TokenRoute = {
  path: chatPath,
  around: () => ({ head: '', tail: '' }),
  body(request, model) {
    if (request.sampling.routed_experts || request.sampling.sampling_mask)
      throw new RolloutError('backend-refused', 'a chat-only server reports no routed experts and no sampling masks');
    const notOfOpenai = 'a chat route may ignore it';
    refuseFields(request.sampling, 'a chat-only server', {
      min_tokens: notOfOpenai,
      'structured_outputs.regex': notOfOpenai,
      'structured_outputs.choice': notOfOpenai,
      'structured_outputs.grammar': notOfOpenai,
    });
    return JSON.stringify({
      ...toMessages(request.chat?.() ?? trial),
      ...definedOf({ model: request.adapter ?? model }),
      ...toParams(request),
    });
  },
  parse(text, request) {
    const reply = parseReply(chatReply, text);
    const [choice, ...others] = reply.choices;
    if (!choice || others.length > 0) throw refuse(`${reply.choices.length} choices where one was asked for`);
    const { message } = choice;
    const tokenIds = choice.token_ids ?? message?.generation_token_ids;
    const prompt = reply.prompt_token_ids ?? message?.prompt_token_ids;
    if (!tokenIds || !prompt) throw withoutIds(reply);
    if (request.chat) checkPrompt(prompt, request);
    const logprobs =
      message?.generation_log_probs ?? (choice.logprobs?.content ?? []).map((entry) => Reflect.get(Object(entry), 'logprob'));
    const finishReason = toFinishReason(choice.finish_reason);
    return toGeneration(request, { tokenIds, logprobs, finishReason, stoppedBy: choice.stop_reason });
  },
};

/** What a health check asks: any answer with ids will do. */
const trial: ChatPrompt = { messages: [{ role: 'user', content: '1' }], tools: [] };

const ids = array.nullish();
const chatReply = z.looseObject({
  prompt_token_ids: ids,
  choices: z.array(
    z.looseObject({
      token_ids: ids,
      finish_reason: z.string().nullish(),
      stop_reason: stoppedBy.nullish().catch(undefined),
      logprobs: z.looseObject({ content: array.nullish() }).nullish(),
      // As NeMo Gym's servers report them.
      message: z.looseObject({ prompt_token_ids: ids, generation_token_ids: ids, generation_log_probs: ids }).nullish(),
    }),
  ),
});

function toMessages({ messages, tools }: ChatPrompt): Record<string, unknown> {
  const described = tools.map((tool) => ({ type: 'function', function: { ...tool } }));
  // The calls are read by us, so the server shows the tools and reads nothing.
  return { messages: messages.map(toChatMessage), ...(tools.length > 0 ? { tools: described, tool_choice: 'none' } : {}) };
}

function toChatMessage({ reasoning, tool_calls: calls, ...message }: Message): Record<string, unknown> {
  const tool_calls = calls?.map(({ id, name, arguments: given }) => {
    return { id, type: 'function', function: { name, arguments: JSON.stringify(given) } };
  });
  return { ...message, ...definedOf({ reasoning_content: reasoning, tool_calls }) };
}

/** What is not OpenAI's is sent only where it changes something. */
function toParams({ sampling, maxTokens, stopTokenIds }: GenerateRequest): Record<string, unknown> {
  const { temperature, top_p, seed, presence_penalty, frequency_penalty, top_k, min_p, repetition_penalty } = sampling;
  const { stop = [], logit_bias, structured_outputs: { json } = {} } = sampling;
  return {
    ...{ temperature, top_p, presence_penalty, frequency_penalty, max_tokens: maxTokens },
    ...definedOf({
      seed,
      top_k: top_k > 0 ? top_k : undefined,
      min_p: min_p > 0 ? min_p : undefined,
      repetition_penalty: repetition_penalty === 1 ? undefined : repetition_penalty,
      stop: stop.length > 0 ? stop : undefined,
      logit_bias,
      response_format: json && { type: 'json_schema', json_schema: { name: 'turn', schema: json, strict: true } },
    }),
    ...{ n: 1, stream: false, logprobs: true, return_token_ids: true, stop_token_ids: stopTokenIds, skip_special_tokens: false },
  };
}

function checkPrompt(prompt: readonly unknown[], { promptJson }: GenerateRequest): void {
  const seen = prompt.join();
  const sent = promptJson.toString('latin1');
  if (seen === sent) return;
  const [theirs, ours] = [prompt.map(String), sent.split(',')];
  const at = theirs.findIndex((id, index) => id !== ours[index]);
  const from = at < 0 ? theirs.length : at;
  const show = (all: readonly string[]) => `[${all.slice(from, from + 6).join(', ')}]`;
  throw new RolloutError(
    'backend-refused',
    `the chat route rendered another prompt than the service: from token ${from} on ${show(theirs)} instead of ${show(ours)}. ` +
      'Use the same chat template, or a server with a token route, which continues ids',
  );
}

function withoutIds({ choices }: z.infer<typeof chatReply>): RolloutError {
  const keys = Object.keys(choices[0] ?? {}).join(', ');
  const advice = 'use vLLM, which returns them with return_token_ids, or a NeMo Gym server with return_token_id_information';
  return new RolloutError('backend-refused', `the chat route returned no token ids (a choice has ${keys}): ${advice}`);
}

function toFinishReason(reason: string | null | undefined): FinishReason {
  switch (reason) {
    case 'stop':
    case 'tool_calls':
      return 'stop';
    case 'length':
    case 'abort':
      return reason;
    default:
      throw refuse(`${JSON.stringify(reason)} as the finish reason`);
  }
}
