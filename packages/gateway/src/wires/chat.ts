// OpenAI's chat completions, with the reasoning in `reasoning_content`, as vLLM and most harnesses have it.

import { definedOf, type Message } from '@millrace/protocol';
import { z } from 'zod';
import {
  GatewayError,
  type ReplyEvent,
  type ReplyHead,
  type ReplyUsage,
  type Wire,
  type WireRequest,
  type WireStream,
} from '../wire-request.ts';
import { joinText, jsonObject, parseBody, pickAsked, readArguments, requireMessages, textContent, toSse, toToolSpec } from './wire-body.ts';

const chatMessage = z.looseObject({
  role: z.enum(['system', 'developer', 'user', 'assistant', 'tool', 'function']),
  content: textContent.nullish(),
  reasoning_content: z.string().nullish(),
  reasoning: z.string().nullish().catch(undefined),
  tool_calls: z
    .array(z.looseObject({ id: z.string(), function: z.looseObject({ name: z.string(), arguments: z.string().default('') }) }))
    .nullish(),
  tool_call_id: z.string().nullish(),
  name: z.string().nullish(),
});

const chatRequest = z.looseObject({
  model: z.string().default(''),
  messages: z.array(chatMessage).min(1),
  tools: z
    .array(
      z.looseObject({
        type: z.string(),
        function: z
          .looseObject({ name: z.string().min(1), description: z.string().nullish(), parameters: jsonObject.nullish() })
          .optional(),
      }),
    )
    .nullish(),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().optional() }).nullish(),
  n: z.int().nullish(),
});

const askedNames: Readonly<Record<string, string>> = {
  temperature: 'temperature',
  top_p: 'top_p',
  top_k: 'top_k',
  min_p: 'min_p',
  presence_penalty: 'presence_penalty',
  frequency_penalty: 'frequency_penalty',
  repetition_penalty: 'repetition_penalty',
  max_tokens: 'max_tokens',
  max_completion_tokens: 'max_tokens',
  min_tokens: 'min_tokens',
  seed: 'seed',
  stop: 'stop',
  logit_bias: 'logit_bias',
  tool_choice: 'tool_choice',
  response_format: 'response_format',
  reasoning_effort: 'reasoning_effort',
  parallel_tool_calls: 'parallel_tool_calls',
  logprobs: 'logprobs',
};

export const chatWire: Wire = {
  name: 'chat',
  parse(body) {
    const given = parseBody(chatRequest, body);
    if ((given.n ?? 1) !== 1) throw new GatewayError('invalid', `n must be 1, not ${given.n}`, 'n');
    return {
      model: given.model,
      messages: requireMessages(given.messages.map(toMessage), 'messages'),
      tools: (given.tools ?? []).flatMap((tool) => (tool.type === 'function' && tool.function ? [toToolSpec(tool.function)] : [])),
      asked: pickAsked(given, askedNames),
      isStreamed: given.stream ?? false,
      wantsUsage: given.stream_options?.include_usage ?? false,
    };
  },
  toReply({ reasoning, text, calls, finish, usage }, head) {
    const tool_calls = calls.map(({ id, name, arguments: args }) => ({ id, type: 'function', function: { name, arguments: args } }));
    const message = {
      role: 'assistant',
      content: text === '' && calls.length > 0 ? null : text,
      ...(reasoning === '' ? {} : { reasoning_content: reasoning }),
      ...(calls.length > 0 ? { tool_calls } : {}),
    };
    const choice = { index: 0, message, logprobs: null, finish_reason: toFinish(finish) };
    return { ...toHead(head, 'chat.completion'), choices: [choice], usage: toUsage(usage) };
  },
  openStream: (head, request) => new ChatStream(head, request),
  toError: toChatError,
  toStreamError: (error) => toSse(toChatError(error)),
};

function toMessage(given: z.infer<typeof chatMessage>, index: number): Message {
  const { role } = given;
  const content = joinText(given.content, `messages.${index}.content`);
  if (role === 'assistant') {
    const reasoning = given.reasoning_content ?? given.reasoning ?? undefined;
    const calls = (given.tool_calls ?? []).map(({ id, function: called }) => ({
      id,
      name: called.name,
      arguments: readArguments(called.arguments),
    }));
    return { role, content, ...definedOf({ reasoning, tool_calls: calls.length > 0 ? calls : undefined }) };
  }
  if (role === 'tool' || role === 'function')
    return { role: 'tool', content, ...definedOf({ tool_call_id: given.tool_call_id ?? undefined, name: given.name ?? undefined }) };
  return { role: role === 'developer' ? 'system' : role, content };
}

class ChatStream implements WireStream {
  readonly #head: ReplyHead;
  readonly #wantsUsage: boolean;
  #calls = 0;

  constructor(head: ReplyHead, { wantsUsage }: WireRequest) {
    this.#head = head;
    this.#wantsUsage = wantsUsage;
  }

  start(): string {
    return this.#chunk({ role: 'assistant', content: '' });
  }

  write(event: ReplyEvent): string {
    switch (event.kind) {
      case 'reasoning':
        return this.#chunk({ reasoning_content: event.text });
      case 'text':
        return this.#chunk({ content: event.text });
      case 'call': {
        const index = this.#calls++;
        return this.#chunk({ tool_calls: [{ index, id: event.id, type: 'function', function: { name: event.name, arguments: '' } }] });
      }
      case 'arguments':
        return this.#chunk({ tool_calls: [{ index: this.#calls - 1, function: { arguments: event.text } }] });
      case 'keep-alive':
        return this.#chunk({});
      case 'end': {
        const usage = { ...toHead(this.#head, 'chat.completion.chunk'), choices: [], usage: toUsage(event.usage) };
        return this.#chunk({}, toFinish(event.finish)) + (this.#wantsUsage ? toSse(usage) : '') + toSse('[DONE]');
      }
    }
  }

  #chunk(delta: Record<string, unknown>, finish: string | null = null): string {
    const choice = { index: 0, delta, logprobs: null, finish_reason: finish };
    return toSse({ ...toHead(this.#head, 'chat.completion.chunk'), choices: [choice] });
  }
}

function toHead({ id, createdS, model }: ReplyHead, object: string) {
  return { id: `chatcmpl-${id}`, object, created: createdS, model };
}

function toFinish(finish: 'stop' | 'length' | 'calls'): string {
  return finish === 'calls' ? 'tool_calls' : finish;
}

function toUsage({ promptTokens, sampledTokens, cachedTokens }: ReplyUsage) {
  return {
    prompt_tokens: promptTokens,
    completion_tokens: sampledTokens,
    total_tokens: promptTokens + sampledTokens,
    ...(cachedTokens === undefined ? {} : { prompt_tokens_details: { cached_tokens: cachedTokens } }),
  };
}

/** The shape of OpenAI's errors, also for its Responses. */
export function toChatError({ kind, message, param, status }: GatewayError) {
  const type =
    status === 401 ? 'authentication_error' : status === 429 ? 'rate_limit_error' : status < 500 ? 'invalid_request_error' : 'server_error';
  const code = kind === 'context-length' ? 'context_length_exceeded' : kind.replaceAll('-', '_');
  return { error: { message, type, param: param ?? null, code } };
}
