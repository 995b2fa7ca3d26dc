// Anthropic's messages. A signature is sent with reasoning, because clients drop thinking without one; nothing is read from it.

import { definedOf, type Message } from '@millrace/protocol';
import { z } from 'zod';
import type { GatewayError, ReplyEvent, ReplyFinish, ReplyHead, ReplyUsage, Wire, WireStream } from '../wire-request.ts';
import { joinText, jsonObject, parseBody, pickAsked, readArguments, requireMessages, textContent, toSse, toToolSpec } from './wire-body.ts';

const block = z.looseObject({
  type: z.string(),
  text: z.string().optional(),
  thinking: z.string().optional(),
  id: z.string().optional(),
  name: z.string().optional(),
  input: jsonObject.optional(),
  tool_use_id: z.string().optional(),
  content: z.unknown().optional(),
});
type ContentBlock = z.infer<typeof block>;

const anthropicRequest = z.looseObject({
  model: z.string().default(''),
  system: textContent.optional(),
  messages: z
    .array(z.looseObject({ role: z.enum(['user', 'assistant', 'system']), content: z.union([z.string(), z.array(block)]) }))
    .min(1),
  tools: z
    .array(z.looseObject({ name: z.string().min(1), description: z.string().optional(), input_schema: jsonObject.optional() }))
    .optional(),
  stream: z.boolean().optional(),
});

const askedNames: Readonly<Record<string, string>> = {
  max_tokens: 'max_tokens',
  temperature: 'temperature',
  top_p: 'top_p',
  top_k: 'top_k',
  stop_sequences: 'stop',
  tool_choice: 'tool_choice',
  thinking: 'thinking',
};

export const anthropicWire: Wire = {
  name: 'anthropic',
  parse(body) {
    const given = parseBody(anthropicRequest, body);
    const system = joinText(given.system, 'system');
    const messages = given.messages.flatMap(({ role, content }, index) => toMessages(role, content, `messages.${index}.content`));
    return {
      model: given.model,
      messages: requireMessages(system === '' ? messages : [{ role: 'system', content: system }, ...messages], 'messages'),
      // Tools that Anthropic runs itself have no schema, and cannot be called here.
      tools: (given.tools ?? []).flatMap((tool) => (tool.input_schema ? [toToolSpec({ ...tool, parameters: tool.input_schema })] : [])),
      asked: pickAsked(given, askedNames),
      isStreamed: given.stream ?? false,
      wantsUsage: true,
    };
  },
  toReply({ reasoning, text, calls, finish, usage }, { id, model }) {
    const content = [
      ...(reasoning === '' ? [] : [{ type: 'thinking', thinking: reasoning, signature: toSignature(id) }]),
      ...(text === '' && calls.length > 0 ? [] : [{ type: 'text', text, citations: null }]),
      ...calls.map((call) => ({ type: 'tool_use', id: call.id, name: call.name, input: readArguments(call.arguments) })),
    ];
    return { ...toHead(id, model), content, stop_reason: toStop(finish), stop_sequence: null, usage: toUsage(usage) };
  },
  openStream: (head) => new AnthropicStream(head),
  toError: toAnthropicError,
  toStreamError: (error) => toSse(toAnthropicError(error), 'error'),
};

function toMessages(role: 'user' | 'assistant' | 'system', content: string | ContentBlock[], param: string): Message[] {
  if (typeof content === 'string') return [{ role, content }];
  if (role === 'assistant') return [toAssistant(content, param)];
  const results = content.filter(({ type }) => type === 'tool_result');
  const texts = content.filter(({ type }) => type !== 'tool_result');
  return [
    ...results.map(
      (one): Message => ({
        role: 'tool',
        content: joinText(textContent.nullish().parse(one.content), param),
        ...definedOf({ tool_call_id: one.tool_use_id }),
      }),
    ),
    ...(texts.length > 0 ? [{ role, content: joinText(texts, param) }] : []),
  ];
}

function toAssistant(content: readonly ContentBlock[], param: string): Message {
  const texts = content.filter(({ type }) => type !== 'tool_use' && !type.endsWith('thinking'));
  const reasoning = content.flatMap(({ type, thinking }) => (type === 'thinking' && thinking ? [thinking] : [])).join('\n');
  const calls = content
    .filter(({ type }) => type === 'tool_use')
    .map(({ id = '', name = '', input = {} }) => ({ id, name, arguments: input }));
  return {
    role: 'assistant',
    content: joinText(texts, param),
    ...definedOf({ reasoning: reasoning === '' ? undefined : reasoning, tool_calls: calls.length > 0 ? calls : undefined }),
  };
}

class AnthropicStream implements WireStream {
  readonly #head: ReplyHead;
  #open: 'thinking' | 'text' | 'tool_use' | undefined;
  #blocks = 0;

  constructor(head: ReplyHead) {
    this.#head = head;
  }

  start(): string {
    const { id, model, promptTokens } = this.#head;
    const usage = { input_tokens: promptTokens, output_tokens: 0 };
    return this.#event('message_start', { message: { ...toHead(id, model), content: [], stop_reason: null, stop_sequence: null, usage } });
  }

  write(event: ReplyEvent): string {
    switch (event.kind) {
      case 'reasoning':
        return (
          this.#into('thinking', { type: 'thinking', thinking: '', signature: '' }) +
          this.#delta({ type: 'thinking_delta', thinking: event.text })
        );
      case 'text':
        return this.#into('text', { type: 'text', text: '', citations: null }) + this.#delta({ type: 'text_delta', text: event.text });
      case 'call':
        return this.#close() + this.#into('tool_use', { type: 'tool_use', id: event.id, name: event.name, input: {} });
      case 'arguments':
        return this.#delta({ type: 'input_json_delta', partial_json: event.text });
      case 'keep-alive':
        return this.#event('ping', {});
      case 'end': {
        const empty = this.#blocks === 0 && !this.#open ? this.#into('text', { type: 'text', text: '', citations: null }) : '';
        const delta = { stop_reason: toStop(event.finish), stop_sequence: null };
        return (
          empty + this.#close() + this.#event('message_delta', { delta, usage: toUsage(event.usage) }) + this.#event('message_stop', {})
        );
      }
    }
  }

  #into(kind: 'thinking' | 'text' | 'tool_use', content_block: Record<string, unknown>): string {
    if (this.#open === kind && kind !== 'tool_use') return '';
    const closed = this.#close();
    this.#open = kind;
    return closed + this.#event('content_block_start', { index: this.#blocks, content_block });
  }

  #close(): string {
    if (!this.#open) return '';
    const signed = this.#open === 'thinking' ? this.#delta({ type: 'signature_delta', signature: toSignature(this.#head.id) }) : '';
    this.#open = undefined;
    return signed + this.#event('content_block_stop', { index: this.#blocks++ });
  }

  #delta(delta: Record<string, unknown>): string {
    return this.#event('content_block_delta', { index: this.#blocks, delta });
  }

  #event(type: string, data: Record<string, unknown>): string {
    return toSse({ type, ...data }, type);
  }
}

function toHead(id: string, model: string) {
  return { id: `msg_${id}`, type: 'message', role: 'assistant', model };
}

function toSignature(id: string): string {
  return Buffer.from(id).toString('base64');
}

function toStop(finish: ReplyFinish): string {
  return finish === 'calls' ? 'tool_use' : finish === 'length' ? 'max_tokens' : 'end_turn';
}

function toUsage({ promptTokens, sampledTokens, cachedTokens }: ReplyUsage) {
  // Anthropic counts cached tokens apart from the others.
  const cached = cachedTokens === undefined ? {} : { cache_read_input_tokens: cachedTokens };
  return { input_tokens: promptTokens - (cachedTokens ?? 0), output_tokens: sampledTokens, ...cached };
}

function toAnthropicError({ kind, message, status }: GatewayError) {
  const types: Readonly<Record<number, string>> = {
    400: 'invalid_request_error',
    401: 'authentication_error',
    404: 'not_found_error',
    410: 'not_found_error',
    413: 'request_too_large',
    429: 'rate_limit_error',
  };
  const text = kind === 'context-length' ? `prompt is too long: ${message}` : message;
  return { type: 'error', error: { type: types[status] ?? 'api_error', message: text } };
}
