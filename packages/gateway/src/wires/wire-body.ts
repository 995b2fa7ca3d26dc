// What the bodies of all wires have in common: content in parts, arguments as text, and faults that name their field.

import { describeIssues, type Message, type ToolSpec, tryJson } from '@millrace/protocol';
import { type ZodType, z } from 'zod';
import { GatewayError } from '../wire-request.ts';

export function parseBody<T>(schema: ZodType<T>, body: unknown): T {
  const parsed = schema.safeParse(body);
  if (parsed.success) return parsed.data;
  const param = parsed.error.issues[0]?.path.join('.');
  throw new GatewayError('invalid', `the request is not valid: ${describeIssues(parsed.error.issues)}`, param === '' ? undefined : param);
}

export const jsonObject = z.record(z.string(), z.unknown());

/** A text, or parts of which each has a text. */
export const textContent = z.union([z.string(), z.array(z.looseObject({ type: z.string().optional(), text: z.string().optional() }))]);

const textTypes: ReadonlySet<string | undefined> = new Set(['text', 'input_text', 'output_text', undefined]);

export function joinText(content: z.infer<typeof textContent> | null | undefined, param: string): string {
  if (content === null || content === undefined) return '';
  if (typeof content === 'string') return content;
  return content
    .map(({ type, text, refusal }) => {
      if (textTypes.has(type) && text !== undefined) return text;
      if (type === 'refusal' && typeof refusal === 'string') return refusal;
      throw new GatewayError('invalid', `content of type ${type ?? 'unknown'} is not supported; send text`, param);
    })
    .join('');
}

/** Arguments that are not a JSON object are kept as text: only a turn that was not sampled here is ever rendered from them. */
export function readArguments(text: string): Record<string, unknown> {
  const parsed = jsonObject.safeParse(tryJson(text === '' ? '{}' : text));
  return parsed.success ? parsed.data : { raw: text };
}

export function toToolSpec(tool: {
  readonly name: string;
  readonly description?: string | null | undefined;
  readonly parameters?: Record<string, unknown> | null | undefined;
}): ToolSpec {
  return { name: tool.name, description: tool.description ?? '', parameters: tool.parameters ?? { type: 'object', properties: {} } };
}

/** The fields that are set, under our names. */
export function pickAsked(body: Readonly<Record<string, unknown>>, names: Readonly<Record<string, string>>): Record<string, unknown> {
  const asked: Record<string, unknown> = {};
  for (const [theirs, ours] of Object.entries(names)) {
    const value = body[theirs];
    if (value !== undefined && value !== null) asked[ours] = value;
  }
  if (typeof asked.stop === 'string') asked.stop = [asked.stop];
  return asked;
}

export function requireMessages(messages: readonly Message[], param: string): readonly Message[] {
  if (messages.length === 0) throw new GatewayError('invalid', `${param} has no messages`, param);
  if (messages.at(-1)?.role === 'assistant')
    throw new GatewayError('invalid', `${param} ends with a turn of the assistant; end with a user message or a tool result`, param);
  return messages;
}

/** One server-sent event. */
export function toSse(data: unknown, event?: string): string {
  return `${event === undefined ? '' : `event: ${event}\n`}data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`;
}
