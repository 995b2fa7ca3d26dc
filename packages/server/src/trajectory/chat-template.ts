// A model's own chat template, used so that the past is never rendered twice: the opening once, then only what follows an
// assistant's turn. What users and tools wrote comes out as untrusted parts, which cannot spell a control token.

import { Template } from '@huggingface/jinja';
import type { Message, ToolSpec } from '@millrace/protocol';
import { z } from 'zod';
import type { TextPart } from './tokenizer.ts';

export interface ChatTemplate {
  /** The text of the token that ends a turn; what `renderDelta` gives follows it. */
  readonly endOfTurn: string;
  /** The whole conversation so far, up to and including the generation prompt. */
  renderOpening(messages: readonly Message[], tools: readonly ToolSpec[]): TextPart[];
  /** What follows the end of an assistant's turn: the new messages, then the generation prompt of the next turn. */
  renderDelta(newMessages: readonly Message[]): TextPart[];
}

const tokenText = z.union([z.string(), z.object({ content: z.string() }).transform(({ content }) => content)]);
const templateConfig = z.looseObject({
  chat_template: z.union([z.string(), z.array(z.object({ name: z.string(), template: z.string() }))]),
  bos_token: tokenText.nullish(),
  eos_token: tokenText,
});

/**
 * Takes what tokenizer_config.json holds. Throws an Error that names the template when its deltas depend on what came before
 * them, because such a conversation cannot be continued exactly.
 */
export function openChatTemplate(tokenizerConfig: unknown, name = 'the chat template'): ChatTemplate {
  const parsed = templateConfig.safeParse(tokenizerConfig);
  if (!parsed.success) throw new Error(`${name} cannot be used: ${z.prettifyError(parsed.error)}`);
  const { chat_template: source, bos_token, eos_token: endOfTurn } = parsed.data;
  const template = new Template(chooseSource(source, name));
  const renderShape = (messages: readonly Message[], tools: readonly ToolSpec[]) =>
    renderSkeleton(messages, (guarded) =>
      template.render({
        messages: guarded.map(toTemplateMessage),
        ...(tools.length > 0 ? { tools: tools.map((tool) => ({ type: 'function', function: tool })) } : {}),
        add_generation_prompt: true,
        bos_token: bos_token ?? '',
        eos_token: endOfTurn,
      }),
    );
  const renderDeltaShape = ({ messages, tools, answer }: Past, newMessages: readonly Message[]) =>
    cutDelta(renderShape([...messages, ...newMessages], tools), { endOfTurn, answer });
  const fillDelta = (past: Past, newMessages: readonly Message[], skeleton: Skeleton) =>
    fill(skeleton, untrustedTexts([...past.messages, ...newMessages]));
  proveContinuable((past, newMessages) => fillDelta(past, newMessages, renderDeltaShape(past, newMessages)), name);
  const remembered = rememberShapes((newMessages) => renderDeltaShape(shortPast, newMessages));
  return {
    endOfTurn,
    renderOpening: (messages, tools) => fill(renderShape(messages, tools), untrustedTexts(messages)),
    renderDelta: (newMessages) => fillDelta(shortPast, newMessages, remembered(newMessages)),
  };
}

const mostShapes = 256;

/** The template never sees what users and tools wrote, so it need be run only once for each shape of new messages. */
function rememberShapes(render: (newMessages: readonly Message[]) => Skeleton): (newMessages: readonly Message[]) => Skeleton {
  const shapes = new Map<string, Skeleton>();
  return (newMessages) => {
    const shape = JSON.stringify(newMessages.map((message) => (isUntrusted(message) ? toShape(message) : message)));
    const skeleton = shapes.get(shape) ?? render(newMessages);
    if (shapes.size < mostShapes) shapes.set(shape, skeleton);
    return skeleton;
  };
}

function toShape({ content: _content, name, ...rest }: Message): Record<string, unknown> {
  return { ...rest, named: name !== undefined };
}

function chooseSource(source: z.infer<typeof templateConfig>['chat_template'], name: string): string {
  if (typeof source === 'string') return source;
  const chosen = source.find((entry) => entry.name === 'tool_use') ?? source.find((entry) => entry.name === 'default');
  if (!chosen) throw new Error(`${name} cannot be used: it has neither a "tool_use" nor a "default" entry`);
  return chosen.template;
}

function toTemplateMessage({ tool_calls, ...rest }: Message): Record<string, unknown> {
  if (!tool_calls) return rest;
  const calls = tool_calls.map(({ id, name, arguments: args }) => ({ id, type: 'function', function: { name, arguments: args } }));
  return { ...rest, tool_calls: calls };
}

/** The template's own text around places for what users and tools wrote; the same for all messages of one shape. */
type Skeleton = readonly (
  | { readonly text: string }
  | { readonly place: number; readonly trimsStart: boolean; readonly trimsEnd: boolean }
)[];

/** The space around a placeholder shows where the template trims; the text that comes there is trimmed likewise. */
function renderSkeleton(messages: readonly Message[], render: (guarded: readonly Message[]) => string): Skeleton {
  let mark = '\u{e000}';
  while (messages.some((message) => !isUntrusted(message) && JSON.stringify(message).includes(mark))) mark += '\u{e000}';
  let places = 0;
  const guard = () => `\u2003${mark}${places++}\u{e001}\u2003`;
  const guarded = messages.map((message) => {
    if (!isUntrusted(message)) return message;
    return { ...message, content: guard(), ...(message.name === undefined ? {} : { name: guard() }) };
  });
  const pieces = render(guarded).split(new RegExp(`(\u2003?${mark}[0-9]+\u{e001}\u2003?)`, 'u'));
  return pieces.map((piece, index) => {
    if (index % 2 === 0) return { text: piece };
    const place = Number.parseInt(piece.replace(/^\D+/u, ''), 10);
    return { place, trimsStart: !piece.startsWith('\u2003'), trimsEnd: !piece.endsWith('\u2003') };
  });
}

/** In the order in which `renderSkeleton` makes places for them. */
function untrustedTexts(messages: readonly Message[]): string[] {
  return messages.filter(isUntrusted).flatMap(({ content, name }) => (name === undefined ? [content] : [content, name]));
}

function fill(skeleton: Skeleton, texts: readonly string[]): TextPart[] {
  return skeleton.flatMap((piece): TextPart[] => {
    if ('text' in piece) return piece.text === '' ? [] : [{ text: piece.text, trusted: true }];
    const text = texts[piece.place] ?? '';
    const begun = piece.trimsStart ? text.trimStart() : text;
    return [{ text: piece.trimsEnd ? begun.trimEnd() : begun, trusted: false }];
  });
}

/** System and assistant messages of an opening are the scenario's own text. */
function isUntrusted({ role }: Message): boolean {
  return role === 'user' || role === 'tool';
}

/** A conversation whose last turn is the assistant's, saying `answer`. */
interface Past {
  readonly messages: readonly Message[];
  readonly tools: readonly ToolSpec[];
  readonly answer: string;
}

function cutDelta(skeleton: Skeleton, { endOfTurn, answer }: { endOfTurn: string; answer: string }): Skeleton {
  const at = skeleton.findIndex((piece) => 'text' in piece && piece.text.includes(answer));
  const piece = skeleton[at];
  const text = piece && 'text' in piece ? piece.text : '';
  const end = text.indexOf(endOfTurn, text.indexOf(answer));
  if (at < 0 || end < 0) throw new Error(`an assistant's turn is not ended with ${endOfTurn}`);
  return [{ text: text.slice(end + endOfTurn.length) }, ...skeleton.slice(at + 1)];
}

const shortPast: Past = {
  messages: [
    { role: 'user', content: 'question' },
    { role: 'assistant', content: 'short-answer' },
  ],
  tools: [],
  answer: 'short-answer',
};

const call = { id: 'call_0', name: 'bash', arguments: { command: 'true' } };

const longPast: Past = {
  messages: [
    { role: 'system', content: 'rules' },
    { role: 'user', content: 'first question' },
    { role: 'assistant', content: '<think>\nthought\n</think>\n\nfirst answer', tool_calls: [call] },
    { role: 'tool', content: 'result', name: 'bash', tool_call_id: 'call_0' },
    { role: 'assistant', content: '<think>\nthought\n</think>\n\nlong-answer', tool_calls: [{ ...call, id: 'call_1' }] },
  ],
  tools: [{ name: 'bash', description: 'Runs a command.', parameters: { type: 'object', properties: {} } }],
  answer: 'long-answer',
};

function proveContinuable(renderDelta: (past: Past, newMessages: readonly Message[]) => TextPart[], name: string): void {
  const toolMessage: Message = { role: 'tool', content: 'output', name: 'bash', tool_call_id: 'call_1' };
  const userMessage: Message = { role: 'user', content: 'go on' };
  for (const newMessages of [[toolMessage], [toolMessage, toolMessage], [userMessage], [toolMessage, userMessage]]) {
    const [short, long] = [shortPast, longPast].map((past) => JSON.stringify(attempt(() => renderDelta(past, newMessages), name)));
    const roles = newMessages.map(({ role }) => role).join(', ');
    if (short !== long) throw notContinuable(name, `after two different pasts, ${roles} is rendered as ${short} and as ${long}`);
  }
}

function attempt<T>(work: () => T, name: string): T {
  try {
    return work();
  } catch (error) {
    throw notContinuable(name, error instanceof Error ? error.message : String(error));
  }
}

function notContinuable(name: string, why: string): Error {
  return new Error(`${name} cannot be continued exactly: ${why}`);
}
