// The tool-call and reasoning format of a model, found and proven with its own chat template: turns with calls, parallel calls, all types of
// arguments and reasoning are written by the template, read back by a parser, and compared. What no parser reads is refused, never taken
// for text.

import { isDeepStrictEqual } from 'node:util';
import { type Message, messageOf, type ToolCall, type ToolSpec } from '@millrace/protocol';
import type { ChatTemplate } from './template/chat-template.ts';
import type { Past } from './template/template-pasts.ts';
import { excerpt, type ToolCallParser, type ToolFormat } from './tool-calls/tool-calls.ts';
import { findToolParser, type ToolParserName, toolParsers } from './tool-calls/tool-parsers.ts';

export interface ModelProfile {
  readonly parser: ToolCallParser;
  /**
   * `proven`: the parser reads what the template writes. `declared`: the template's instructions name the format, but it writes no calls
   * into a history. `taught`: the template knows no tools, so messages teach the format. `differs`: a parser was named that does not
   * read what the template writes.
   */
  readonly toolCalls: 'proven' | 'declared' | 'taught' | 'differs';
  readonly reasoning: 'proven' | 'not written' | 'differs';
  /** The turns that were written, read and compared. */
  readonly checks: readonly ProfileCheck[];
}

export interface ProfileCheck {
  readonly what: string;
  readonly outcome: 'proven' | 'refused by the template' | 'not written by the template' | 'differs';
  readonly why?: string;
}

const tools: readonly ToolSpec[] = [
  {
    name: 'bash',
    description: 'Runs a command.',
    parameters: { type: 'object', properties: { command: { type: 'string', description: 'The command.' } }, required: ['command'] },
  },
  {
    name: 'search',
    description: 'Searches.',
    parameters: {
      type: 'object',
      properties: {
        query: { type: 'string', description: 'The words.' },
        limit: { type: 'integer', description: 'How many.' },
        deep: { type: 'boolean', description: 'Whether in folders.' },
        tags: { type: 'array', items: { type: 'string' }, description: 'The tags.' },
      },
      required: ['query'],
    },
  },
];
/** Ids that no parser makes up. */
const call = (index: number, name: string, args: Record<string, unknown>): ToolCall => ({ id: `k3x9Qz7A${index}`, name, arguments: args });
const list = call(0, 'bash', { command: 'ls -l' });
const turn = (content: string, more: Partial<Message> = {}): Message => ({ role: 'assistant', content, ...more });

interface ProfileCase {
  readonly what: string;
  readonly turn: Message;
  /** A word that shows whether the template writes the turn at all. */
  readonly sign: string;
}

const thought = 'first a thought';
const callCases: readonly ProfileCase[] = [
  { what: 'a call', turn: turn('', { tool_calls: [list] }), sign: 'ls -l' },
  { what: 'text and a call', turn: turn('Let me look.', { tool_calls: [list] }), sign: 'ls -l' },
  { what: 'parallel calls', turn: turn('', { tool_calls: [list, call(1, 'bash', { command: 'pwd' })] }), sign: 'pwd' },
  {
    what: 'arguments of all types',
    turn: turn('', { tool_calls: [call(0, 'search', { query: 'abc', limit: 3, deep: true, tags: ['x', 'y'] })] }),
    sign: 'query',
  },
];
/** A template that does not escape these is wrong for its history only: the model writes its calls itself. */
const quoteCase: ProfileCase = {
  what: 'quotes and newlines in arguments',
  turn: turn('', { tool_calls: [call(0, 'bash', { command: 'echo "a"\necho \'b\'' })] }),
  sign: 'echo',
};
const textCase: ProfileCase = { what: 'text', turn: turn('The answer is 42.'), sign: '42' };
const reasoningCases: readonly ProfileCase[] = [
  { what: 'reasoning and text', turn: turn('The answer is 42.', { reasoning: thought }), sign: thought },
  { what: 'reasoning and a call', turn: turn('', { reasoning: thought, tool_calls: [list] }), sign: thought },
];

/** Chooses by proof for `auto`, and throws if no parser reads the template's calls. A parser that was named is kept, whatever it proves. */
export function proveProfile(template: ChatTemplate, wanted: ToolParserName, name: string): ModelProfile {
  if (wanted !== 'auto') return toProfile(template, findToolParser(wanted));
  const candidates = toolParsers.filter((parser) => parser.name !== 'fenced');
  const proven = candidates.find((parser) => isProven(callCases.map((one) => check(template, parser, one))));
  if (proven) return toProfile(template, proven);
  const [first] = callCases;
  const example = first && writeExample(template, first.turn, name);
  if (!first || !example?.includes(first.sign))
    return toProfile(template, findToolParser(template.declaresTools ? readInstructions(template, name) : 'hermes'));
  const fault = findFault(template, example);
  const remedy =
    'Set model.toolParser to the format that the model was trained on, or model.chatTemplate to a template with a known format (docs/models.md)';
  throw new Error(`${name} ${fault ?? describeUnknown({ template, example }, candidates)} ${remedy}`);
}

/** Why no parser could read what the template writes, if that is the template's own fault. */
function findFault(template: ChatTemplate, example: string): string | undefined {
  const end = template.ends.all.find((one) => example.includes(one));
  if (end !== undefined)
    return `writes ${end}, which ends a turn, before a call: ${JSON.stringify(excerpt(example))}. A turn would end before its calls.`;
  const reads = ({ name, parse }: ToolCallParser, text: string) => {
    const { content, calls } = parse(text, tools);
    return name !== 'fenced' && content === '' && calls.length > 0;
  };
  const isReadable = (text: string) => toolParsers.some((parser) => reads(parser, text));
  const mark = isReadable(example) ? undefined : template.ends.all.find((one) => isReadable(example + one));
  if (mark !== undefined)
    return `ends a turn with a call by ${mark}, which is a mark of the call itself: ${JSON.stringify(excerpt(example + mark))}. A turn would end before its calls do.`;
  if (!/\bbash\(command=/.test(example)) return undefined;
  const [broken] = callCases
    .map(({ turn: wanted }) => writeExample(template, wanted, 'it') ?? '')
    .filter((text) => findToolParser('pythonic').parse(text).malformed.length > 0);
  if (broken === undefined) return undefined;
  return `writes a call as ${JSON.stringify(excerpt(broken))}, which is not valid Python: a quote or a comma is missing, so no parser can read it.`;
}

/** What the instructions of a template say about the format; only for templates that write no calls into a history. */
const instructions: readonly (readonly [RegExp, ToolFormat])[] = [
  [/<function=/, 'qwen3-coder'],
  [/<tool_call>/, 'hermes'],
  [/<\|tool_call_start\|>|<\|tool_list_start\|>|List of tools: \[/, 'lfm2'],
  [/<\|tool_call\|>/, 'granite'],
  [/"parameters": dictionary/, 'llama3-json'],
];

function readInstructions(template: ChatTemplate, name: string): ToolFormat {
  const parts = template.renderOpening([{ role: 'user', content: 'question' }], tools);
  const text = parts.map((part) => part.text).join('');
  const [, format] = instructions.find(([sign]) => sign.test(text)) ?? [];
  if (format !== undefined) return format;
  throw new Error(
    `${name} declares tools but writes no calls, and does not say how the model writes them. Set model.toolParser to the format that it was trained on`,
  );
}

/** A template that lists tools and then refuses calls has a format, but does not show which. */
function writeExample(template: ChatTemplate, wanted: Message, name: string): string | undefined {
  try {
    return template.writeTurn(wanted, tools);
  } catch (error) {
    if (!template.declaresTools) return undefined;
    throw new Error(
      `${name} declares tools but refuses a turn with a call: ${messageOf(error)}. Set model.toolParser to the format that the model was trained on`,
    );
  }
}

function isProven(checks: readonly ProfileCheck[]): boolean {
  return checks[0]?.outcome === 'proven' && checks.every(({ outcome }) => outcome !== 'differs');
}

/** Names the parser that reads most of it. */
function describeUnknown(
  { template, example }: { template: ChatTemplate; example: string },
  candidates: readonly ToolCallParser[],
): string {
  const rows = candidates.map((parser) => ({ parser, checks: callCases.map((one) => check(template, parser, one)) }));
  const count = ({ checks }: (typeof rows)[number]) => checks.filter(({ outcome }) => outcome === 'proven').length;
  const [closest] = rows.sort((a, b) => count(b) - count(a));
  const differs = closest?.checks.find(({ outcome }) => outcome === 'differs');
  const nearest =
    closest && count(closest) > 0 ? ` The closest, ${closest.parser.name}, differs for ${differs?.what}: ${differs?.why}.` : '';
  return `writes a call as ${JSON.stringify(excerpt(example))}, which no tool-call parser reads back, so calls would be taken for text.${nearest}`;
}

function toProfile(template: ChatTemplate, parser: ToolCallParser): ModelProfile {
  const calls = callCases.map((one) => check(template, parser, one));
  const thoughts = template.hasReasoning ? reasoningCases.map((one) => check(template, parser, one)) : [];
  const isWritten = calls[0]?.outcome !== 'not written by the template' && calls[0]?.outcome !== 'refused by the template';
  return {
    parser,
    toolCalls: !isWritten ? (template.declaresTools ? 'declared' : 'taught') : isProven(calls) ? 'proven' : 'differs',
    reasoning: toReasoning(thoughts),
    checks: [check(template, parser, textCase), ...calls, check(template, parser, quoteCase), ...thoughts, ...checkUsers(template)],
  };
}

const user = (content: string): Message => ({ role: 'user', content });
const talk: readonly Message[] = [user('A question.'), textCase.turn];
const longTalk: readonly Message[] = [
  user('A question.'),
  turn('', { tool_calls: [list] }),
  { role: 'tool', content: 'a.txt', name: list.name, tool_call_id: list.id },
  textCase.turn,
];

/** Whether a scenario may answer as the user. */
function checkUsers(template: ChatTemplate): readonly ProfileCheck[] {
  const past = (messages: readonly Message[]) => ({ messages, tools: template.declaresTools ? tools : [] });
  const checks = [checkUser(template, 'a user message after an answer', past(talk))];
  return template.declaresTools ? [...checks, checkUser(template, 'a user message after calls and an answer', past(longTalk))] : checks;
}

function checkUser(template: ChatTemplate, what: string, past: Past): ProfileCheck {
  try {
    if (template.isAppended([user('More.')], past)) return { what, outcome: 'proven' };
    template.renderOpening([...past.messages, user('More.')], past.tools);
    return { what, outcome: 'proven', why: 'as a new branch, because the template then writes what is before it differently' };
  } catch (error) {
    return { what, outcome: 'refused by the template', why: messageOf(error) };
  }
}

function toReasoning(checks: readonly ProfileCheck[]): ModelProfile['reasoning'] {
  if (checks.some(({ outcome }) => outcome === 'differs')) return 'differs';
  return checks.some(({ outcome }) => outcome === 'proven') ? 'proven' : 'not written';
}

function check(template: ChatTemplate, parser: ToolCallParser, { what, turn: wanted, sign }: ProfileCase): ProfileCheck {
  let text: string;
  try {
    text = template.writeTurn(wanted, tools);
  } catch (error) {
    return { what, outcome: 'refused by the template', why: messageOf(error) };
  }
  if (!text.includes(sign)) return { what, outcome: 'not written by the template' };
  const end = template.ends.all.find((one) => text.includes(one));
  if (end !== undefined && parser.ends === undefined)
    return { what, outcome: 'not written by the template', why: `it writes two turns, with ${end} between them` };
  const why = compare(wanted, { text, parser });
  return why === undefined ? { what, outcome: 'proven' } : { what, outcome: 'differs', why };
}

/** Undefined if the parser reads the turn that was written. Text that the template drops cannot be read. */
function compare(
  { content, reasoning, tool_calls = [] }: Message,
  { text, parser }: { text: string; parser: ToolCallParser },
): string | undefined {
  const read = parser.parse(text, tools);
  const [malformed] = read.malformed;
  if (malformed !== undefined) return malformed;
  const [seen, wanted] = [read.calls, tool_calls].map((calls) => calls.map(({ name, arguments: args }) => ({ name, args })));
  if (!isDeepStrictEqual(seen, wanted)) return `it reads ${excerpt(JSON.stringify(seen))} instead of ${excerpt(JSON.stringify(wanted))}`;
  const lost = tool_calls.find(({ id }, index) => text.includes(id) && read.calls[index]?.id !== id);
  if (lost) return `it does not read the id ${lost.id} of a call`;
  const written = text.includes(content) ? content : '';
  const isThought = reasoning === undefined && read.content === '' && read.reasoning === written; // gpt-oss thinks before a call
  if (read.content !== written && !isThought)
    return `it reads the text ${JSON.stringify(excerpt(read.content))} instead of ${JSON.stringify(written)}`;
  if (reasoning !== undefined && read.reasoning !== reasoning)
    return `it reads the reasoning ${JSON.stringify(read.reasoning ?? '')} instead of ${JSON.stringify(reasoning)}`;
  return undefined;
}
