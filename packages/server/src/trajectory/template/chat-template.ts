// A model's own chat template, used so that the past is never rendered twice: the opening once, then only what follows an
// assistant's turn. What cannot be continued exactly is refused by name, at start-up or when such messages first come.

import { Template } from '@huggingface/jinja';
import type { Message, ToolSpec } from '@millrace/protocol';
import { messageOf } from '@millrace/protocol';
import { z } from 'zod';
import type { TextPart } from '../tokenizer/tokenizer.ts';
import { toCallId } from '../tool-calls/tool-calls.ts';
import { fillSkeleton, findLost, rememberShapes, renderSkeleton, type Skeleton } from './template-skeleton.ts';

export interface ChatTemplate {
  /** The Jinja text that was chosen. */
  readonly source: string;
  /** The text of the token that ends a turn; what `renderDelta` gives follows it. */
  readonly endOfTurn: string;
  /** The role in which tools answer: `user` where the template knows no tools; all answers of a turn are then one message. */
  readonly answerRole: 'tool' | 'user';
  /** The whole conversation so far, up to and including the generation prompt. */
  renderOpening(messages: readonly Message[], tools: readonly ToolSpec[]): TextPart[];
  /** What follows the end of an assistant's turn: the new messages, then the generation prompt of the next turn. */
  renderDelta(newMessages: readonly Message[]): TextPart[];
}

export interface TemplateOptions {
  readonly name?: string;
  /** The vocabulary's control tokens, among which the end of a turn is found. */
  readonly controlTokens?: readonly string[];
  /** Variables for the template, such as `enable_thinking`. */
  readonly kwargs?: Readonly<Record<string, unknown>>;
}

const tokenText = z.union([z.string(), z.object({ content: z.string() }).transform(({ content }) => content)]);
const templateConfig = z.looseObject({
  chat_template: z.union([z.string(), z.array(z.object({ name: z.string(), template: z.string() }))]),
  bos_token: tokenText.nullish(),
  eos_token: tokenText,
});

/** Takes what tokenizer_config.json holds. Throws an Error that names the template when its conversations cannot be continued exactly. */
export function openChatTemplate(tokenizerConfig: unknown, options: TemplateOptions = {}): ChatTemplate {
  const { name = 'the chat template', controlTokens = [], kwargs = {} } = options;
  const parsed = templateConfig.safeParse(tokenizerConfig);
  if (!parsed.success) throw new Error(`${name} cannot be used: ${z.prettifyError(parsed.error)}`);
  const { chat_template, bos_token, eos_token } = parsed.data;
  const source = chooseSource(chat_template, name);
  const template = attempt(name, () => new Template(source));
  const variables = { ...kwargs, bos_token: bos_token ?? '', eos_token };
  const render: Render = (messages, tools = [], goesOn = true) =>
    renderSkeleton(messages, (guarded) =>
      template.render({
        ...variables,
        messages: guarded.map(toTemplateMessage),
        ...(tools.length > 0 ? { tools: tools.map((tool) => ({ type: 'function', function: tool })) } : {}),
        add_generation_prompt: goesOn,
      }),
    );
  const endOfTurn = attempt(name, () => findEndOfTurn(render, [eos_token, ...controlTokens]));
  const renderShape = rememberShapes(makeDeltaRenderer({ render, endOfTurn, name }));
  const answerRole = chooseAnswerRole(renderShape);
  return {
    source,
    endOfTurn,
    answerRole,
    renderOpening: (messages, tools) => fillSkeleton(renderOpeningShape({ render, name }, messages, tools), messages),
    renderDelta(newMessages) {
      const messages = answerRole === 'user' ? toUserMessages(newMessages) : newMessages;
      return fillSkeleton(renderShape(messages), [...shortPast.messages, ...messages]);
    },
  };
}

type Render = (messages: readonly Message[], tools?: readonly ToolSpec[], goesOn?: boolean) => Skeleton;

function chooseSource(source: z.infer<typeof templateConfig>['chat_template'], name: string): string {
  if (typeof source === 'string') return source;
  const chosen = source.find((entry) => entry.name === 'tool_use') ?? source.find((entry) => entry.name === 'default');
  if (!chosen) throw new Error(`${name} cannot be used: it has neither a "tool_use" nor a "default" entry`);
  return chosen.template;
}

/** Some templates insist on the id of an answered call, which an answer to an unreadable call has not. */
function toTemplateMessage({ tool_calls, ...rest }: Message): Record<string, unknown> {
  if (rest.role === 'tool') return { tool_call_id: toCallId(0), ...rest };
  if (!tool_calls) return rest;
  const calls = tool_calls.map(({ id, name, arguments: args }) => ({ id, type: 'function', function: { name, arguments: args } }));
  return { ...rest, tool_calls: calls };
}

function renderOpeningShape({ render, name }: { render: Render; name: string }, messages: readonly Message[], tools: readonly ToolSpec[]) {
  const skeleton = attempt(name, () => render(messages, tools));
  const [lost] = findLost(skeleton, messages);
  if (lost) throw notContinuable(name, `it does not write what a ${lost.role} message says exactly once`);
  return skeleton;
}

const answer = 'answer\u{e002}';

/** The first control token behind an assistant's words, which need not be the vocabulary's end of text. */
function findEndOfTurn(render: Render, controlTokens: readonly string[]): string {
  const text = lastText(render(shortPast.messages, [], false));
  const tail = text.slice(text.lastIndexOf(answer) + answer.length);
  const found = controlTokens
    .map((token) => ({ token, at: tail.indexOf(token) }))
    .filter(({ at }) => at >= 0)
    .sort((a, b) => a.at - b.at || b.token.length - a.token.length);
  if (!text.includes(answer) || !found[0])
    throw new Error(`an assistant's turn is not ended with a control token, but with ${JSON.stringify(tail)}`);
  return found[0].token;
}

function lastText(skeleton: Skeleton): string {
  const piece = skeleton.at(-1);
  return piece && 'text' in piece ? piece.text : '';
}

/** A conversation whose last turn is the assistant's, ending with `answer` in its words or in its call. */
interface Past {
  readonly messages: readonly Message[];
  readonly tools: readonly ToolSpec[];
}

const shortPast: Past = {
  messages: [
    { role: 'user', content: 'question' },
    { role: 'assistant', content: answer },
  ],
  tools: [],
};

const system: Message = { role: 'system', content: 'rules' };
const makeCall = (index: number) => ({ id: toCallId(index), name: 'bash', arguments: { command: answer } });
const talk: readonly Message[] = [
  { role: 'user', content: 'first question' },
  { role: 'assistant', content: '<think>\nthought\n</think>\n\nfirst answer', tool_calls: [makeCall(0)] },
  { role: 'tool', content: 'result', name: 'bash', tool_call_id: toCallId(0) },
  { role: 'assistant', content: `<think>\nthought\n</think>\n\n${answer}`, tool_calls: [makeCall(1)] },
];
const plainTalk: readonly Message[] = [
  { role: 'user', content: 'first question' },
  { role: 'assistant', content: 'first answer' },
  { role: 'user', content: 'second question' },
  { role: 'assistant', content: answer },
];
const tools: readonly ToolSpec[] = [{ name: 'bash', description: 'Runs a command.', parameters: { type: 'object', properties: {} } }];

/** From the fullest to what the strictest template takes: some know no system message, and some no tools. */
const longPasts: readonly Past[] = [
  { messages: [system, ...talk], tools },
  { messages: talk, tools },
  { messages: [system, ...plainTalk], tools: [] },
  { messages: plainTalk, tools: [] },
];

/** The template does not take such messages at all. */
class Unsupported extends Error {}

/** Renders what follows a past, and proves for each shape of messages that it does not depend on which past that was. */
function makeDeltaRenderer({ render, endOfTurn, name }: { render: Render; endOfTurn: string; name: string }) {
  const longPast = longPasts.find((past) => doesRender(() => render(past.messages, past.tools))) ?? shortPast;
  const renderAfter = ({ messages: past, tools }: Past, newMessages: readonly Message[]) => {
    const messages = [...past, ...newMessages];
    const roles = newMessages.map(({ role }) => role).join(', ');
    const whole = attempt(name, () => render(messages, tools));
    const [lost] = findLost(whole, messages, past.length);
    if (lost) throw new Unsupported(`${name} cannot be continued exactly: it does not write what a ${lost.role} message says exactly once`);
    const delta = cutDelta(whole, endOfTurn);
    if (!delta) throw notContinuable(name, `the turn before ${roles} is not ended with ${endOfTurn}`);
    return delta;
  };
  return (newMessages: readonly Message[]): Skeleton => {
    const delta = renderAfter(shortPast, newMessages);
    const [short, long] = [shortPast, longPast].map((past) => {
      const skeleton = past === shortPast ? delta : renderAfter(past, newMessages);
      return JSON.stringify(fillSkeleton(skeleton, [...past.messages, ...newMessages]));
    });
    const roles = newMessages.map(({ role }) => role).join(', ');
    if (short !== long) throw notContinuable(name, `after two different pasts, ${roles} is rendered as ${short} and as ${long}`);
    return delta;
  };
}

/** What follows the end of the turn that has the last `answer`. */
function cutDelta(skeleton: Skeleton, endOfTurn: string): Skeleton | undefined {
  const at = skeleton.findLastIndex((piece) => 'text' in piece && piece.text.includes(answer));
  const piece = skeleton[at];
  const text = piece && 'text' in piece ? piece.text : '';
  const end = text.indexOf(endOfTurn, text.lastIndexOf(answer));
  if (at < 0 || end < 0) return undefined;
  return [{ text: text.slice(end + endOfTurn.length) }, ...skeleton.slice(at + 1)];
}

function chooseAnswerRole(renderShape: (newMessages: readonly Message[]) => Skeleton): 'tool' | 'user' {
  const tool: Message = { role: 'tool', content: 'output', name: 'bash', tool_call_id: toCallId(1) };
  try {
    renderShape([tool]);
    renderShape([tool, tool]);
    return 'tool';
  } catch (error) {
    if (!(error instanceof Unsupported)) throw error;
  }
  renderShape([{ role: 'user', content: 'output' }]);
  return 'user';
}

/** For a template without tools: their answers, and what a user says with them, are one user message. */
function toUserMessages(messages: readonly Message[]): readonly Message[] {
  return [{ role: 'user', content: messages.map(({ content }) => content).join('\n\n') }];
}

function attempt<T>(name: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw new Unsupported(`${name} cannot be continued exactly: ${messageOf(error)}`);
  }
}

function doesRender(work: () => unknown): boolean {
  try {
    work();
    return true;
  } catch {
    return false; // whether it renders is the question
  }
}

function notContinuable(name: string, why: string): Error {
  return new Error(`${name} cannot be continued exactly: ${why}`);
}
