// A model's own chat template, used so that the past is never rendered twice: the opening is rendered once, then only what follows an
// assistant's turn. A template that cannot be continued exactly is refused with a reason, at startup or when such messages first occur.

import { systemClock } from '@millrace/base/clock';
import { describeIssues, type Message, type ToolSpec } from '@millrace/protocol';
import { z } from 'zod';
import { JinjaTemplate } from '../jinja/jinja.ts';
import { toJson } from '../jinja/values/python-text.ts';
import { toValue } from '../jinja/values/values.ts';
import type { TextPart } from '../tokenizer/added-tokens.ts';
import { noCallId, toCallId } from '../tool-calls/tool-calls.ts';
import { type Rendering, renderAt, type TemplateClock } from './template-clock.ts';
import {
  attempt,
  type DeltaRenderer,
  DependsOnPast,
  doesRender,
  makeDeltaRenderer,
  notContinuable,
  Unsupported,
} from './template-delta.ts';
import { exampleTools, type Past, question, system } from './template-pasts.ts';
import { openReasoning, type TemplateMessage } from './template-reasoning.ts';
import { fillSkeleton, findLost, renderSkeleton } from './template-skeleton.ts';
import { findTurnEnds, type Render, type TurnEnds } from './turn-ends.ts';
import { writeTurn } from './written-turn.ts';

export interface ChatTemplate extends Rendering {
  /** The Jinja source of the template. */
  readonly source: string;
  /** How a turn ends. The output of `renderDelta` follows it. */
  readonly ends: TurnEnds;
  /** The role of tool results. It is `user` if the template knows no tools; all results of a turn are then one message. */
  readonly resultRole: 'tool' | 'user';
  /** Whether it writes the tools that it is given; otherwise the policy would never learn of them. */
  readonly declaresTools: boolean;
  /** Whether it accepts a system message. */
  readonly hasSystem: boolean;
  /** Whether it knows reasoning: as a field of the message, or by its tags. */
  readonly hasReasoning: boolean;
  /** Whether it refuses a conversation without tools. */
  readonly needsTools: boolean;
  /** Whether results may have this id. */
  takesId(id: string): boolean;
  /** The same template, whose strftime_now writes this time. */
  at(nowMs: number): ChatTemplate;
}

interface TemplateOptions {
  readonly name?: string;
  /** The control tokens of the vocabulary; one of them ends a turn. */
  readonly controlTokens?: readonly string[];
  /** The tokens that end a text, according to the model's files. */
  readonly eosTokens?: readonly string[];
  /** Variables for the template, such as `enable_thinking`. */
  readonly kwargs?: Readonly<Record<string, unknown>>;
}

const tokenText = z.union([z.string(), z.object({ content: z.string() }).transform(({ content }) => content)]);
const templateConfig = z.looseObject({
  chat_template: z.union([z.string(), z.array(z.object({ name: z.string(), template: z.string() }))]),
  bos_token: tokenText.nullish(),
  eos_token: tokenText.nullish(),
});

/** Takes the content of tokenizer_config.json. Throws an Error that names the template if its conversations cannot be continued exactly. */
export function openChatTemplate(tokenizerConfig: unknown, options: TemplateOptions = {}): ChatTemplate {
  const { name = 'the chat template', controlTokens = [] } = options;
  const parsed = templateConfig.safeParse(tokenizerConfig);
  if (!parsed.success) throw new Error(`${name} cannot be used: ${describeIssues(parsed.error.issues)}`);
  const source = chooseSource(parsed.data.chat_template, name);
  const { bos_token, eos_token } = parsed.data;
  const clock: TemplateClock = { nowMs: systemClock.now() };
  const variables = { ...options.kwargs, bos_token: bos_token ?? '', eos_token: eos_token ?? '' };
  const renderText = openRenderer(source, { variables, name, clock });
  const reasoning = openReasoning(source, renderText);
  const needsTools = !doesRender(() => renderText([question])) && doesRender(() => renderText([question], exampleTools));
  const render: Render = (messages, tools, addsPrompt) =>
    renderSkeleton(messages, (guarded) => renderText(guarded.map(reasoning.write), tools, addsPrompt));
  const probe: Render = (messages, tools = [], addsPrompt) =>
    render(messages, needsTools && tools.length === 0 ? exampleTools : tools, addsPrompt);
  const eosTokens = [...(eos_token ? [eos_token] : []), ...(options.eosTokens ?? [])];
  const ends = attempt(name, () => findTurnEnds(probe, { eosTokens, controlTokens }));
  const deltas = makeDeltaRenderer({ render: probe, ends, name, variant: () => clock.nowMs });
  const resultRole = chooseResultRole(deltas);
  const toKnownRoles = (messages: readonly Message[]) => (resultRole === 'user' ? toUserMessages(messages) : messages);
  const template: ChatTemplate = {
    source,
    ends,
    resultRole,
    declaresTools: findsTools(render),
    hasSystem: doesRender(() => renderOpeningShape({ render: probe, name }, [system, question], [])),
    hasReasoning: reasoning.isKnown,
    needsTools,
    renderOpening: (messages, tools) => fillSkeleton(renderOpeningShape({ render, name }, messages, tools), messages),
    renderDelta(newMessages, past = noPast) {
      const messages = toKnownRoles(newMessages);
      return renderAfterAny(deltas, messages, past) ?? deltas.afterPast(messages, past);
    },
    isAppended(newMessages, past) {
      const messages = toKnownRoles(newMessages);
      return renderAfterAny(deltas, messages, past) !== undefined || deltas.isPastKept(messages, past);
    },
    renderFirstDelta: (newMessages) => deltas.afterShort(toKnownRoles(newMessages)),
    takesId: rememberLengths((id) =>
      doesRender(() => deltas.afterShort([{ role: resultRole, content: 'x', name: 'bash', tool_call_id: id }])),
    ),
    keepsReasoning: (last, newMessages, hasEarlier = false) => resultRole === 'user' || reasoning.isKept(last, newMessages, hasEarlier),
    writeTurn: (turn, tools) =>
      writeTurn((messages, addsPrompt) => renderText(messages.map(reasoning.write), tools, addsPrompt), turn, ends),
    at: (nowMs) => (source.includes('strftime_now') ? { ...template, ...renderAt(template, clock, nowMs) } : template),
  };
  return template;
}

const noPast: Past = { messages: [], tools: [] };

type RenderText = (messages: readonly TemplateMessage[], tools?: readonly ToolSpec[], addsPrompt?: boolean) => string;

interface RendererOptions {
  readonly variables: Readonly<Record<string, unknown>>;
  readonly name: string;
  readonly clock: TemplateClock;
}

export function openRenderer(source: string, { variables, name, clock }: RendererOptions): RenderText {
  const template = attempt(name, () => new JinjaTemplate(source));
  const renderAs =
    (form: CallForm): RenderText =>
    (messages, tools = [], addsPrompt = true) =>
      template.render(
        {
          ...variables,
          messages: messages.map((message) => toTemplateMessage(message, form)),
          tools: tools.length > 0 ? tools.map((tool) => ({ type: 'function', function: tool })) : null,
          documents: null,
          add_generation_prompt: addsPrompt,
        },
        clock.nowMs,
      );
  return renderAs(chooseCallForm(renderAs));
}

/** How a template wants a message with calls: the arguments as an object or as JSON text, empty content as '' or as nothing. */
interface CallForm {
  readonly hasText: boolean;
  readonly hasNull: boolean;
}

const callForms: readonly CallForm[] = [false, true].flatMap((hasNull) => [false, true].map((hasText) => ({ hasText, hasNull })));

/** The first form in which the template writes the call of a message, and not the Python way. */
function chooseCallForm(renderAs: (form: CallForm) => RenderText): CallForm {
  const call: Message = {
    role: 'assistant',
    content: '',
    tool_calls: [{ id: toCallId(0), name: 'bash', arguments: { command: 'ls8e005' } }],
  };
  const isRight = (form: CallForm): boolean => {
    const text = renderAs(form)([question, call], exampleTools, false);
    return text.includes('ls8e005') && !text.includes("{'command'") && !text.includes('\\"command\\"');
  };
  return callForms.find((form) => doesRender(() => isRight(form)) && isRight(form)) ?? { hasText: false, hasNull: false };
}

function chooseSource(source: z.infer<typeof templateConfig>['chat_template'], name: string): string {
  if (typeof source === 'string') return source;
  const chosen = source.find((entry) => entry.name === 'tool_use') ?? source.find((entry) => entry.name === 'default');
  if (!chosen) throw new Error(`${name} cannot be used: it has neither a "tool_use" nor a "default" entry`);
  return chosen.template;
}

/** Some templates require the id of the call, which the result of a malformed call does not have. */
function toTemplateMessage({ tool_calls, ...rest }: TemplateMessage, { hasText, hasNull }: CallForm): Record<string, unknown> {
  if (rest.role === 'tool') return { tool_call_id: noCallId, ...rest };
  if (!tool_calls) return rest;
  const calls = tool_calls.map(({ id, name, arguments: args }) => {
    return { id, type: 'function', function: { name, arguments: hasText ? toJson(toValue(args)) : args } };
  });
  return { ...rest, content: hasNull && rest.content === '' ? null : rest.content, tool_calls: calls };
}

function renderOpeningShape({ render, name }: { render: Render; name: string }, messages: readonly Message[], tools: readonly ToolSpec[]) {
  const skeleton = attempt(name, () => render(messages, tools));
  const [lost] = findLost(skeleton, messages);
  if (lost) throw notContinuable(name, `it does not write the content of a ${lost.role} message exactly once`);
  const text = skeleton.map((piece) => ('text' in piece ? piece.text : '')).join('');
  const unwritten = messages.find(({ role, content }) => role === 'system' && !text.includes(content.trim()));
  if (unwritten) throw notContinuable(name, 'it does not write the content of a system message');
  return skeleton;
}

/** What is the same after any past, if the last turn of this one is as usual: it made the calls that are answered, or is text. */
function renderAfterAny(deltas: DeltaRenderer, newMessages: readonly Message[], past: Past): TextPart[] | undefined {
  const { tool_calls, content = '' } = past.messages.at(-1) ?? {};
  const isAnswered = newMessages[0]?.role === 'tool';
  if (past.messages.length > 0 && isAnswered !== (tool_calls !== undefined)) return undefined;
  try {
    return deltas.afterAny(newMessages, isAnswered && content !== '');
  } catch (error) {
    if (past.messages.length === 0 || !(error instanceof DependsOnPast || error instanceof Unsupported)) throw error;
    return undefined;
  }
}

function chooseResultRole(deltas: DeltaRenderer): 'tool' | 'user' {
  const tool: Message = { role: 'tool', content: 'output', name: 'bash', tool_call_id: toCallId(1) };
  try {
    deltas.afterShort([tool]);
    deltas.afterShort([tool, { ...tool, tool_call_id: toCallId(2) }]);
    return 'tool';
  } catch (error) {
    if (!(error instanceof Unsupported)) throw error;
  }
  deltas.afterShort([{ role: 'user', content: 'output' }]);
  return 'user';
}

/** Ids of the same length are the same to a template, which sees only placeholders for them. */
function rememberLengths(takes: (id: string) => boolean): (id: string) => boolean {
  const lengths = new Map<number, boolean>();
  return (id) => {
    const known = lengths.get([...id].length) ?? takes(id);
    lengths.set([...id].length, known);
    return known;
  };
}

function findsTools(render: Render): boolean {
  const [tool] = exampleTools;
  if (!tool) return false;
  const named = { ...tool, name: 'tool8e003' };
  return [[question], [system, question]].some((messages) => {
    const isThere = () => render(messages, [named]).some((piece) => 'text' in piece && piece.text.includes(named.name));
    return doesRender(isThere) && isThere();
  });
}

/** For a template without tools: tool results and user messages become one user message. */
function toUserMessages(messages: readonly Message[]): readonly Message[] {
  return [{ role: 'user', content: messages.map(({ content }) => content).join('\n\n') }];
}
