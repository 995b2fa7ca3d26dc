// Google's generateContent. A call is one part, so its arguments are sent when they are complete.

import { definedOf, type Message } from '@millrace/protocol';
import { z } from 'zod';
import type { GatewayError, ReplyEvent, ReplyFinish, ReplyHead, ReplyUsage, Wire, WireStream } from '../wire-request.ts';
import { GatewayError as Refusal } from '../wire-request.ts';
import { jsonObject, parseBody, pickAsked, readArguments, requireMessages, toSse, toToolSpec } from './wire-body.ts';

const part = z.looseObject({
  text: z.string().optional(),
  thought: z.boolean().optional(),
  functionCall: z.looseObject({ id: z.string().optional(), name: z.string(), args: jsonObject.optional() }).optional(),
  functionResponse: z.looseObject({ id: z.string().optional(), name: z.string(), response: jsonObject.optional() }).optional(),
});
type Part = z.infer<typeof part>;
const content = z.looseObject({ role: z.string().optional(), parts: z.array(part).default([]) });

const geminiRequest = z.looseObject({
  contents: z.array(content).min(1),
  systemInstruction: z.union([content, z.string()]).optional(),
  tools: z
    .array(
      z.looseObject({
        functionDeclarations: z
          .array(
            z.looseObject({
              name: z.string().min(1),
              description: z.string().optional(),
              parameters: jsonObject.optional(),
              parametersJsonSchema: jsonObject.optional(),
            }),
          )
          .optional(),
      }),
    )
    .optional(),
  generationConfig: jsonObject.optional(),
});

const askedNames: Readonly<Record<string, string>> = {
  temperature: 'temperature',
  topP: 'top_p',
  topK: 'top_k',
  maxOutputTokens: 'max_tokens',
  stopSequences: 'stop',
  seed: 'seed',
  presencePenalty: 'presence_penalty',
  frequencyPenalty: 'frequency_penalty',
  thinkingConfig: 'thinkingConfig',
};

export const geminiWire: Wire = {
  name: 'gemini',
  parse(body, { model = '', isStreamed = false }) {
    const given = parseBody(geminiRequest, body);
    const { systemInstruction } = given;
    const system =
      typeof systemInstruction === 'string' ? systemInstruction : (systemInstruction?.parts ?? []).map(({ text = '' }) => text).join('');
    const messages = given.contents.flatMap(({ role, parts }, index) => toMessages(role === 'model', parts, `contents.${index}`));
    return {
      model,
      messages: requireMessages(system === '' ? messages : [{ role: 'system', content: system }, ...messages], 'contents'),
      tools: (given.tools ?? []).flatMap(({ functionDeclarations = [] }) =>
        functionDeclarations.map((one) => toToolSpec({ ...one, parameters: one.parametersJsonSchema ?? one.parameters })),
      ),
      asked: pickAsked(given.generationConfig ?? {}, askedNames),
      isStreamed,
      wantsUsage: true,
    };
  },
  toReply({ reasoning, text, calls, finish, usage }, head) {
    const parts = [
      ...(reasoning === '' ? [] : [{ text: reasoning, thought: true }]),
      ...(text === '' && calls.length > 0 ? [] : [{ text }]),
      ...calls.map(({ id, name, arguments: args }) => ({ functionCall: { id, name, args: readArguments(args) } })),
    ];
    return toChunk(head, parts, { finish, usage });
  },
  openStream: (head) => new GeminiStream(head),
  toError: toGeminiError,
  toStreamError: (error) => toSse(toGeminiError(error)),
};

function toMessages(isModel: boolean, parts: readonly Part[], param: string): Message[] {
  const unknown = parts.find(({ text, functionCall, functionResponse }) => text === undefined && !functionCall && !functionResponse);
  if (unknown) throw new Refusal('invalid', `a part with ${Object.keys(unknown).join(', ')} is not supported; send text`, param);
  const texts = parts.flatMap(({ text, thought }) => (text !== undefined && !thought ? [text] : []));
  if (isModel) {
    const calls = parts.flatMap(({ functionCall: call }) =>
      call ? [{ id: call.id ?? '', name: call.name, arguments: call.args ?? {} }] : [],
    );
    const reasoning = parts.flatMap(({ text, thought }) => (text !== undefined && thought ? [text] : [])).join('');
    const more = definedOf({ reasoning: reasoning || undefined, tool_calls: calls.length > 0 ? calls : undefined });
    return [{ role: 'assistant', content: texts.join(''), ...more }];
  }
  const results = parts.flatMap(({ functionResponse: result }): Message[] =>
    result ? [{ role: 'tool', content: toResultText(result.response), name: result.name, ...definedOf({ tool_call_id: result.id }) }] : [],
  );
  return [...results, ...(texts.length > 0 ? [{ role: 'user' as const, content: texts.join('') }] : [])];
}

/** Results are objects; most have one text. */
function toResultText(response: Readonly<Record<string, unknown>> = {}): string {
  const values = Object.values(response);
  return values.length === 1 && typeof values[0] === 'string' ? values[0] : JSON.stringify(response);
}

class GeminiStream implements WireStream {
  readonly #head: ReplyHead;
  #call: { id: string; name: string; text: string } | undefined;

  constructor(head: ReplyHead) {
    this.#head = head;
  }

  start(): string {
    return '';
  }

  write(event: ReplyEvent): string {
    if (event.kind === 'arguments') {
      if (this.#call) this.#call.text += event.text;
      return '';
    }
    const called = event.kind === 'keep-alive' ? '' : this.#flush();
    switch (event.kind) {
      case 'reasoning':
        return called + toSse(toChunk(this.#head, [{ text: event.text, thought: true }]));
      case 'text':
        return called + toSse(toChunk(this.#head, [{ text: event.text }]));
      case 'call':
        this.#call = { id: event.id, name: event.name, text: '' };
        return called;
      case 'keep-alive':
        return toSse(toChunk(this.#head, [{ text: '' }]));
      case 'end':
        return called + toSse(toChunk(this.#head, [{ text: '' }], event));
    }
  }

  #flush(): string {
    if (!this.#call) return '';
    const { id, name, text } = this.#call;
    this.#call = undefined;
    return toSse(toChunk(this.#head, [{ functionCall: { id, name, args: readArguments(text) } }]));
  }
}

interface ChunkEnd {
  readonly finish: ReplyFinish;
  readonly usage: ReplyUsage;
}

function toChunk({ id, model }: ReplyHead, parts: readonly unknown[], end?: ChunkEnd) {
  const finishReason = end && (end.finish === 'length' ? 'MAX_TOKENS' : 'STOP');
  const candidate = { content: { role: 'model', parts }, index: 0, ...definedOf({ finishReason }) };
  return { candidates: [candidate], modelVersion: model, responseId: id, ...definedOf({ usageMetadata: end && toUsage(end.usage) }) };
}

function toUsage({ promptTokens, sampledTokens, cachedTokens }: ReplyUsage) {
  return {
    promptTokenCount: promptTokens,
    candidatesTokenCount: sampledTokens,
    totalTokenCount: promptTokens + sampledTokens,
    ...definedOf({ cachedContentTokenCount: cachedTokens }),
  };
}

function toGeminiError({ message, status }: GatewayError) {
  const names: Readonly<Record<number, string>> = {
    400: 'INVALID_ARGUMENT',
    401: 'UNAUTHENTICATED',
    404: 'NOT_FOUND',
    410: 'NOT_FOUND',
    413: 'INVALID_ARGUMENT',
    429: 'RESOURCE_EXHAUSTED',
  };
  return { error: { code: status, message, status: names[status] ?? 'UNAVAILABLE' } };
}
