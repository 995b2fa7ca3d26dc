// A model's own chat template, used so that the past is never rendered twice: the opening is rendered once, then only what follows an
// assistant's turn. A template that cannot be continued exactly is refused with a reason, at startup or when such messages first occur.

import { Template } from '@huggingface/jinja';
import { definedOf, type Message, messageOf, type ToolSpec } from '@millrace/protocol';
import { z } from 'zod';
import type { TextPart } from '../tokenizer/tokenizer.ts';
import { toCallId } from '../tool-calls/tool-calls.ts';
import { openReasoning, type TemplateMessage } from './template-reasoning.ts';
import { cacheShapes, fillSkeleton, findLost, renderSkeleton, type Skeleton } from './template-skeleton.ts';

export interface ChatTemplate {
  /** The Jinja source of the template. */
  readonly source: string;
  /** The text of the token that ends a turn. The output of `renderDelta` follows it. */
  readonly endOfTurn: string;
  /** The role of tool results. It is `user` if the template knows no tools; all results of a turn are then one message. */
  readonly resultRole: 'tool' | 'user';
  /** Whether it writes the tools that it is given; otherwise the policy would never learn of them. */
  readonly declaresTools: boolean;
  /** Whether it accepts a system message. */
  readonly hasSystem: boolean;
  /** The whole conversation so far, up to and including the generation prompt. */
  renderOpening(messages: readonly Message[], tools: readonly ToolSpec[]): TextPart[];
  /** What follows the end of an assistant's turn: the new messages, then the generation prompt of the next turn. */
  renderDelta(newMessages: readonly Message[]): TextPart[];
  /**
   * Whether the template still writes the reasoning of earlier turns when these messages follow the turn `last`. Also true if it
   * cannot write that turn's calls: then the history cannot be rendered again.
   */
  keepsReasoning(last: Message, newMessages: readonly Message[]): boolean;
}

export interface TemplateOptions {
  readonly name?: string;
  /** The control tokens of the vocabulary; one of them ends a turn. */
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

/** Takes the content of tokenizer_config.json. Throws an Error that names the template if its conversations cannot be continued exactly. */
export function openChatTemplate(tokenizerConfig: unknown, options: TemplateOptions = {}): ChatTemplate {
  const { name = 'the chat template', controlTokens = [], kwargs = {} } = options;
  const parsed = templateConfig.safeParse(tokenizerConfig);
  if (!parsed.success) throw new Error(`${name} cannot be used: ${z.prettifyError(parsed.error)}`);
  const { chat_template, bos_token, eos_token } = parsed.data;
  const source = chooseSource(chat_template, name);
  const template = attempt(name, () => new Template(source));
  const variables = { ...kwargs, bos_token: bos_token ?? '', eos_token };
  const renderText: RenderText = (messages, tools = [], addsPrompt = true) =>
    template.render({
      ...variables,
      messages: messages.map(toTemplateMessage),
      ...definedOf({ tools: tools.length > 0 ? tools.map((tool) => ({ type: 'function', function: tool })) : undefined }),
      add_generation_prompt: addsPrompt,
    });
  const reasoning = openReasoning(source, renderText);
  const render: Render = (messages, tools, addsPrompt) =>
    renderSkeleton(messages, (guarded) => renderText(guarded.map(reasoning.write), tools, addsPrompt));
  const endOfTurn = attempt(name, () => findEndOfTurn(render, [eos_token, ...controlTokens]));
  const renderShape = cacheShapes(makeDeltaRenderer({ render, endOfTurn, name }));
  const resultRole = chooseResultRole(renderShape);
  return {
    source,
    endOfTurn,
    resultRole,
    declaresTools: findsTools(render),
    hasSystem: doesRender(() => renderOpeningShape({ render, name }, [system, { role: 'user', content: 'question' }], [])),
    renderOpening: (messages, tools) => fillSkeleton(renderOpeningShape({ render, name }, messages, tools), messages),
    renderDelta(newMessages) {
      const messages = resultRole === 'user' ? toUserMessages(newMessages) : newMessages;
      return fillSkeleton(renderShape(messages), [...shortPast.messages, ...messages]);
    },
    keepsReasoning: (last, newMessages) => resultRole === 'user' || reasoning.isKept(last, newMessages),
  };
}

type Render = (messages: readonly Message[], tools?: readonly ToolSpec[], addsPrompt?: boolean) => Skeleton;
type RenderText = (messages: readonly TemplateMessage[], tools?: readonly ToolSpec[], addsPrompt?: boolean) => string;

function chooseSource(source: z.infer<typeof templateConfig>['chat_template'], name: string): string {
  if (typeof source === 'string') return source;
  const chosen = source.find((entry) => entry.name === 'tool_use') ?? source.find((entry) => entry.name === 'default');
  if (!chosen) throw new Error(`${name} cannot be used: it has neither a "tool_use" nor a "default" entry`);
  return chosen.template;
}

/** Some templates require the id of the call, which the result of a malformed call does not have. */
function toTemplateMessage({ tool_calls, ...rest }: TemplateMessage): Record<string, unknown> {
  if (rest.role === 'tool') return { tool_call_id: toCallId(0), ...rest };
  if (!tool_calls) return rest;
  const calls = tool_calls.map(({ id, name, arguments: args }) => ({ id, type: 'function', function: { name, arguments: args } }));
  return { ...rest, tool_calls: calls };
}

function renderOpeningShape({ render, name }: { render: Render; name: string }, messages: readonly Message[], tools: readonly ToolSpec[]) {
  const skeleton = attempt(name, () => render(messages, tools));
  const [lost] = findLost(skeleton, messages);
  if (lost) throw notContinuable(name, `it does not write the content of a ${lost.role} message exactly once`);
  return skeleton;
}

const answer = 'answer\u{e002}';

/** The first control token after an assistant's text, which may differ from the vocabulary's end of text. */
function findEndOfTurn(render: Render, controlTokens: readonly string[]): string {
  const text = lastText(render(shortPast.messages, [], false));
  const tail = text.slice(text.lastIndexOf(answer) + answer.length);
  const found = controlTokens
    .map((token) => ({ token, at: tail.indexOf(token) }))
    .filter(({ at }) => at >= 0)
    .sort((a, b) => a.at - b.at || b.token.length - a.token.length);
  if (!text.includes(answer) || !found[0])
    throw new Error(`an assistant's turn does not end with a control token, but with ${JSON.stringify(tail)}`);
  return found[0].token;
}

function lastText(skeleton: Skeleton): string {
  const piece = skeleton.at(-1);
  return piece && 'text' in piece ? piece.text : '';
}

/** A conversation whose last turn is the assistant's and ends with `answer`, in its text or in its call. */
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

/** From the fullest to the simplest, because some templates accept no system message and some no tools. */
const longPasts: readonly Past[] = [
  { messages: [system, ...talk], tools },
  { messages: talk, tools },
  { messages: [system, ...plainTalk], tools: [] },
  { messages: plainTalk, tools: [] },
];

/** The template does not accept such messages at all. */
class Unsupported extends Error {}

/** Renders what follows a past. For each shape of messages it verifies that the result does not depend on the past. */
function makeDeltaRenderer({ render, endOfTurn, name }: { render: Render; endOfTurn: string; name: string }) {
  const longPast = longPasts.find((past) => doesRender(() => render(past.messages, past.tools))) ?? shortPast;
  const renderAfter = ({ messages: past, tools }: Past, newMessages: readonly Message[]) => {
    const messages = [...past, ...newMessages];
    const roles = newMessages.map(({ role }) => role).join(', ');
    const whole = attempt(name, () => render(messages, tools));
    const [lost] = findLost(whole, messages, past.length);
    if (lost)
      throw new Unsupported(`${name} cannot be continued exactly: it does not write the content of a ${lost.role} message exactly once`);
    const delta = cutDelta(whole, endOfTurn);
    if (!delta) throw notContinuable(name, `the turn before ${roles} does not end with ${endOfTurn}`);
    return delta;
  };
  return (newMessages: readonly Message[]): Skeleton => {
    const delta = renderAfter(shortPast, newMessages);
    const [short, long] = [shortPast, longPast].map((past) => {
      const skeleton = past === shortPast ? delta : renderAfter(past, newMessages);
      return JSON.stringify(fillSkeleton(skeleton, [...past.messages, ...newMessages]));
    });
    const roles = newMessages.map(({ role }) => role).join(', ');
    if (short !== long) throw notContinuable(name, `after two different pasts, it renders ${roles} as ${short} and as ${long}`);
    return delta;
  };
}

/** What follows the end of the turn with the last `answer`. */
function cutDelta(skeleton: Skeleton, endOfTurn: string): Skeleton | undefined {
  const at = skeleton.findLastIndex((piece) => 'text' in piece && piece.text.includes(answer));
  const piece = skeleton[at];
  const text = piece && 'text' in piece ? piece.text : '';
  const end = text.indexOf(endOfTurn, text.lastIndexOf(answer));
  if (at < 0 || end < 0) return undefined;
  return [{ text: text.slice(end + endOfTurn.length) }, ...skeleton.slice(at + 1)];
}

function chooseResultRole(renderShape: (newMessages: readonly Message[]) => Skeleton): 'tool' | 'user' {
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

function findsTools(render: Render): boolean {
  const [tool] = tools;
  if (!tool) return false;
  const named = { ...tool, name: 'tool\u{e003}' };
  const user: Message = { role: 'user', content: 'question' };
  return [[user], [system, user]].some((messages) => {
    const isThere = () => render(messages, [named]).some((piece) => 'text' in piece && piece.text.includes('\u{e003}'));
    return doesRender(isThere) && isThere();
  });
}

/** For a template without tools: tool results and user messages become one user message. */
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
    return false; // this is what the caller wants to know
  }
}

function notContinuable(name: string, why: string): Error {
  return new Error(`${name} cannot be continued exactly: ${why}`);
}
