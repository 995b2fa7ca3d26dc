// OpenAI's Responses. Nothing is stored between requests: a client sends its whole history as input, as Codex does.

import { definedOf, type Message } from '@millrace/protocol';
import { z } from 'zod';
import {
  GatewayError,
  type ReplyEvent,
  type ReplyHead,
  type ReplyUsage,
  type WholeReply,
  type Wire,
  type WireStream,
} from '../wire-request.ts';
import { toChatError } from './chat.ts';
import { joinText, jsonObject, parseBody, pickAsked, readArguments, requireMessages, textContent, toSse, toToolSpec } from './wire-body.ts';

const inputItem = z.looseObject({
  type: z.string().optional(),
  role: z.enum(['system', 'developer', 'user', 'assistant']).optional(),
  content: textContent.nullish(),
  summary: textContent.nullish(),
  call_id: z.string().optional(),
  name: z.string().optional(),
  arguments: z.string().optional(),
  input: z.string().optional(),
  output: textContent.optional(),
});
type InputItem = z.infer<typeof inputItem>;

const responsesRequest = z.looseObject({
  model: z.string().default(''),
  instructions: z.string().nullish(),
  input: z.union([z.string(), z.array(inputItem).min(1)]),
  tools: z
    .array(
      z.looseObject({ type: z.string(), name: z.string().optional(), description: z.string().nullish(), parameters: jsonObject.nullish() }),
    )
    .nullish(),
  stream: z.boolean().nullish(),
  previous_response_id: z.string().nullish(),
});

const askedNames: Readonly<Record<string, string>> = {
  temperature: 'temperature',
  top_p: 'top_p',
  max_output_tokens: 'max_tokens',
  reasoning: 'reasoning',
  tool_choice: 'tool_choice',
  parallel_tool_calls: 'parallel_tool_calls',
  text: 'text',
};

export const responsesWire: Wire = {
  name: 'responses',
  parse(body) {
    const given = parseBody(responsesRequest, body);
    if (given.previous_response_id)
      throw new GatewayError('invalid', 'responses are not stored: send the whole history as input', 'previous_response_id');
    const items = typeof given.input === 'string' ? [{ role: 'user' as const, content: given.input }] : given.input;
    const system: Message[] = given.instructions ? [{ role: 'system', content: given.instructions }] : [];
    return {
      model: given.model,
      messages: requireMessages([...system, ...joinTurns(items)], 'input'),
      tools: (given.tools ?? []).flatMap(({ type, name, description, parameters }) =>
        type === 'function' && name !== undefined ? [toToolSpec({ name, description, parameters })] : [],
      ),
      asked: pickAsked(given, askedNames),
      isStreamed: given.stream ?? false,
      wantsUsage: true,
    };
  },
  toReply: (reply, head) => toResponse(head, toItems(reply, head.id), reply),
  openStream: (head) => new ResponsesStream(head),
  toError: toChatError,
  toStreamError(error) {
    const { code, message, param } = toChatError(error).error;
    return toSse({ type: 'error', code, message, param, sequence_number: 0 }, 'error');
  },
};

/** Reasoning, text and calls of one turn are items of their own: those in a row are one message. Reasoning is not read: the turn has its ids. */
function joinTurns(items: readonly InputItem[]): Message[] {
  const messages: Message[] = [];
  let turn: { content: string; calls: NonNullable<Message['tool_calls']> } | undefined;
  const close = () => {
    if (turn && (turn.content !== '' || turn.calls.length > 0))
      messages.push({
        role: 'assistant',
        content: turn.content,
        ...definedOf({ tool_calls: turn.calls.length > 0 ? turn.calls : undefined }),
      });
    turn = undefined;
  };
  for (const [index, item] of items.entries()) {
    const param = `input.${index}`;
    const { type = 'message', role, call_id = '', name = '' } = item;
    if (type === 'function_call_output' || type === 'custom_tool_call_output') {
      close();
      messages.push({ role: 'tool', content: joinText(item.output, param), tool_call_id: call_id });
    } else if (type === 'message' && role !== 'assistant') {
      close();
      messages.push({ role: role === 'user' ? 'user' : 'system', content: joinText(item.content, param) });
    } else {
      turn ??= { content: '', calls: [] };
      if (type === 'function_call') turn.calls.push({ id: call_id, name, arguments: readArguments(item.arguments ?? '') });
      else if (type === 'message') turn.content += joinText(item.content, param);
      else if (type !== 'reasoning') throw new GatewayError('invalid', `input of type ${type} is not supported`, param);
    }
  }
  close();
  return messages;
}

type OutputItem = Record<string, unknown> & { readonly id: string; readonly type: string };

function toItems({ reasoning, text, calls }: Pick<WholeReply, 'reasoning' | 'text' | 'calls'>, id: string): OutputItem[] {
  return [
    ...(reasoning === '' ? [] : [toReasoning(`rs_${id}`, reasoning)]),
    ...(text === '' && calls.length > 0 ? [] : [toMessageItem(`msg_${id}`, text, 'completed')]),
    ...calls.map((call, index) => toCallItem(`fc_${id}_${index}`, call, 'completed')),
  ];
}

function toReasoning(id: string, text: string): OutputItem {
  return { id, type: 'reasoning', summary: [], content: text === '' ? [] : [{ type: 'reasoning_text', text }], encrypted_content: null };
}

function toMessageItem(id: string, text: string, status: string): OutputItem {
  const content = status === 'completed' ? [{ type: 'output_text', text, annotations: [], logprobs: [] }] : [];
  return { id, type: 'message', role: 'assistant', status, content };
}

function toCallItem(id: string, call: WholeReply['calls'][number], status: string): OutputItem {
  return { id, type: 'function_call', call_id: call.id, name: call.name, arguments: call.arguments, status };
}

function toResponse(
  { id, createdS, model }: ReplyHead,
  output: readonly OutputItem[],
  reply: Pick<WholeReply, 'finish' | 'usage'> | undefined,
) {
  const isCut = reply?.finish === 'length';
  return {
    id: `resp_${id}`,
    object: 'response',
    created_at: createdS,
    status: reply ? (isCut ? 'incomplete' : 'completed') : 'in_progress',
    error: null,
    incomplete_details: isCut ? { reason: 'max_output_tokens' } : null,
    model,
    output,
    parallel_tool_calls: true,
    tool_choice: 'auto',
    tools: [],
    usage: reply ? toUsage(reply.usage) : null,
  };
}

function toUsage({ promptTokens, sampledTokens, cachedTokens = 0 }: ReplyUsage) {
  return {
    input_tokens: promptTokens,
    input_tokens_details: { cached_tokens: cachedTokens },
    output_tokens: sampledTokens,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: promptTokens + sampledTokens,
  };
}

class ResponsesStream implements WireStream {
  readonly #head: ReplyHead;
  readonly #done: OutputItem[] = [];
  #open: { kind: 'reasoning' | 'text' | 'call'; id: string; text: string; callId: string; name: string } | undefined;
  #sequence = 0;

  constructor(head: ReplyHead) {
    this.#head = head;
  }

  start(): string {
    const response = toResponse(this.#head, [], undefined);
    return this.#event('response.created', { response }) + this.#event('response.in_progress', { response });
  }

  write(event: ReplyEvent): string {
    switch (event.kind) {
      case 'reasoning':
        return this.#into('reasoning') + this.#delta('response.reasoning_text.delta', event.text);
      case 'text':
        return this.#into('text') + this.#delta('response.output_text.delta', event.text);
      case 'call':
        return this.#close() + this.#into('call', event);
      case 'arguments':
        return this.#delta('response.function_call_arguments.delta', event.text);
      case 'keep-alive':
        return this.#event('response.in_progress', { response: toResponse(this.#head, this.#done, undefined) });
      case 'end': {
        const empty = this.#done.length === 0 && !this.#open ? this.#into('text') : '';
        const closed = empty + this.#close();
        const type = event.finish === 'length' ? 'response.incomplete' : 'response.completed';
        return closed + this.#event(type, { response: toResponse(this.#head, this.#done, event) });
      }
    }
  }

  #into(
    kind: 'reasoning' | 'text' | 'call',
    { id: callId = '', name = '' }: { readonly id?: string; readonly name?: string } = {},
  ): string {
    if (this.#open?.kind === kind && kind !== 'call') return '';
    const closed = this.#close();
    const prefix = { reasoning: 'rs', text: 'msg', call: 'fc' }[kind];
    this.#open = { kind, id: `${prefix}_${this.#head.id}_${this.#done.length}`, text: '', callId, name };
    const added = this.#event('response.output_item.added', { output_index: this.#done.length, item: this.#toItem('in_progress') });
    const part = kind === 'text' ? { type: 'output_text', text: '', annotations: [], logprobs: [] } : { type: 'reasoning_text', text: '' };
    return closed + added + (kind === 'call' ? '' : this.#event('response.content_part.added', { ...this.#at(), part }));
  }

  #close(): string {
    if (!this.#open) return '';
    const { kind, text } = this.#open;
    const item = this.#toItem('completed');
    const part = { type: 'output_text', text, annotations: [], logprobs: [] };
    const ends = {
      reasoning: () =>
        this.#event('response.reasoning_text.done', { ...this.#at(), text }) +
        this.#event('response.content_part.done', { ...this.#at(), part: { type: 'reasoning_text', text } }),
      text: () =>
        this.#event('response.output_text.done', { ...this.#at(), text, logprobs: [] }) +
        this.#event('response.content_part.done', { ...this.#at(), part }),
      call: () => this.#event('response.function_call_arguments.done', { ...this.#at(), arguments: text, name: this.#open?.name }),
    };
    const done = ends[kind]() + this.#event('response.output_item.done', { output_index: this.#done.length, item });
    this.#done.push(item);
    this.#open = undefined;
    return done;
  }

  #toItem(status: string): OutputItem {
    const { kind = 'text', id = '', text = '', callId = '', name = '' } = this.#open ?? {};
    if (kind === 'reasoning') return toReasoning(id, text);
    return kind === 'text' ? toMessageItem(id, text, status) : toCallItem(id, { id: callId, name, arguments: text }, status);
  }

  #delta(type: string, delta: string): string {
    if (this.#open) this.#open.text += delta;
    return this.#event(type, { ...this.#at(), delta, ...(type === 'response.output_text.delta' ? { logprobs: [] } : {}) });
  }

  #at() {
    return { item_id: this.#open?.id ?? '', output_index: this.#done.length, content_index: 0 };
  }

  #event(type: string, data: Record<string, unknown>): string {
    return toSse({ type, sequence_number: this.#sequence++, ...data }, type);
  }
}
