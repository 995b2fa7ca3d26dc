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
  const render = (messages: readonly Message[], tools: readonly ToolSpec[]) =>
    renderParts(messages, (guarded) =>
      template.render({
        messages: guarded.map(toTemplateMessage),
        ...(tools.length > 0 ? { tools: tools.map((tool) => ({ type: 'function', function: tool })) } : {}),
        add_generation_prompt: true,
        bos_token: bos_token ?? '',
        eos_token: endOfTurn,
      }),
    );
  const renderDelta = (past: Past, newMessages: readonly Message[]) =>
    cutDelta(render([...past.messages, ...newMessages], past.tools), { endOfTurn, answer: past.answer });
  proveContinuable(renderDelta, name);
  return { endOfTurn, renderOpening: render, renderDelta: (newMessages) => renderDelta(shortPast, newMessages) };
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

/**
 * Renders with a placeholder for each text that the caller's side did not write, then puts the texts back as parts of their
 * own. The space around a placeholder shows where the template trims, and the text is trimmed likewise.
 */
function renderParts(messages: readonly Message[], render: (guarded: readonly Message[]) => string): TextPart[] {
  let mark = '\u{e000}';
  while (JSON.stringify(messages).includes(mark)) mark += '\u{e000}';
  const texts: string[] = [];
  const guard = (text: string) => `\u2003${mark}${texts.push(text) - 1}\u{e001}\u2003`;
  const guarded = messages.map((message) => {
    if (!isUntrusted(message)) return message;
    const { content, name } = message;
    return { ...message, content: guard(content), ...(name === undefined ? {} : { name: guard(name) }) };
  });
  const pieces = render(guarded).split(new RegExp(`(\u2003?${mark}[0-9]+\u{e001}\u2003?)`, 'u'));
  return pieces.flatMap((piece, i): TextPart[] => {
    if (i % 2 === 0) return piece === '' ? [] : [{ text: piece, trusted: true }];
    const text = texts[Number.parseInt(piece.replace(/^\D+/u, ''), 10)] ?? '';
    const begun = piece.startsWith('\u2003') ? text : text.trimStart();
    return [{ text: piece.endsWith('\u2003') ? begun : begun.trimEnd(), trusted: false }];
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

function cutDelta(parts: readonly TextPart[], { endOfTurn, answer }: { endOfTurn: string; answer: string }): TextPart[] {
  const at = parts.findIndex((part) => part.trusted && part.text.includes(answer));
  const text = parts[at]?.text ?? '';
  const end = text.indexOf(endOfTurn, text.indexOf(answer));
  if (at < 0 || end < 0) throw new Error(`an assistant's turn is not ended with ${endOfTurn}`);
  const rest = text.slice(end + endOfTurn.length);
  return [...(rest === '' ? [] : [{ text: rest, trusted: true }]), ...parts.slice(at + 1)];
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
