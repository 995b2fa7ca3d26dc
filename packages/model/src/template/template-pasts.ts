// The made-up pasts after which a template is asked what it writes next. A past ends with an assistant's turn that holds `answer`, in its
// text or in the arguments of its calls.

import { definedOf, type Message, type ToolCall, type ToolSpec } from '@millrace/protocol';
import { noCallId } from '../tool-calls/tool-calls.ts';
import { nameOfResult } from './template-skeleton.ts';

/** No template and no text of a user contains it. */
export const answer = 'answer\u{e002}';

/** The text of a turn before its calls. A template that writes it later, after the results, changes the turn. */
export const words = 'words\u{e007}';

export interface Past {
  readonly messages: readonly Message[];
  readonly tools: readonly ToolSpec[];
}

export const system: Message = { role: 'system', content: 'rules' };
export const question: Message = { role: 'user', content: 'question' };
export const exampleTools: readonly ToolSpec[] = [
  { name: 'bash', description: 'Runs a command.', parameters: { type: 'object', properties: { command: { type: 'string' } } } },
];

export const shortPast: Past = { messages: [question, { role: 'assistant', content: answer }], tools: [] };
/** Some templates write the system message only as long as nothing follows the first question. */
export const systemPast: Past = { messages: [system, ...shortPast.messages], tools: exampleTools };

/** Nine letters and digits, as the strictest template requires, and not an id of ours: some templates search all earlier calls for an id. */
const pastId = (index: number) => `past0000${index}`;
const makeCall = (index: number, name = 'bash'): ToolCall => ({ id: pastId(index), name, arguments: { command: answer } });
const thought = '<think>\nthought\n</think>\n\n';
const talk: readonly Message[] = [
  { role: 'user', content: 'first question' },
  { role: 'assistant', content: `${thought}first answer`, tool_calls: [makeCall(0)] },
  { role: 'tool', content: 'result', name: 'bash', tool_call_id: pastId(0) },
  { role: 'assistant', content: `${thought}${answer}`, tool_calls: [makeCall(1)] },
];
const plainTalk: readonly Message[] = [
  { role: 'user', content: 'first question' },
  { role: 'assistant', content: 'first answer' },
  { role: 'user', content: 'second question' },
  { role: 'assistant', content: answer },
];

/** From the fullest to the simplest, because some templates accept no system message and some no tools. */
export const longPasts: readonly Past[] = [
  { messages: [system, ...talk], tools: exampleTools },
  { messages: talk, tools: exampleTools },
  { messages: [system, ...plainTalk], tools: [] },
  { messages: plainTalk, tools: [] },
];

/** The past whose last turn made the calls that these results answer, with the names and ids of the results. */
export function withCalls(past: Past, results: readonly Message[], { count = results.length, content = '' } = {}): Past {
  const calls = results
    .slice(0, count)
    .map(({ tool_call_id = noCallId }, index): ToolCall => ({ ...makeCall(0, nameOfResult(index)), id: tool_call_id }));
  return withLast({ ...past, tools: past.tools.length > 0 ? past.tools : exampleTools }, { content, tool_calls: calls });
}

/** The past whose last turn is only text, which is what a message of a user follows. */
export function withText(past: Past): Past {
  const { content = '' } = past.messages.at(-1) ?? {};
  return withLast(past, { content: content.includes(answer) ? content : answer });
}

/** A real past in which the last turn has `answer` where it ends, in the arguments of its calls or as its text, and `words` before calls. */
export function withAnswer(past: Past, results: readonly Message[]): Past {
  const { content, tool_calls: calls } = past.messages.at(-1) ?? {};
  if (!calls) return withLast(past, { content: answer });
  const nameOf = (id: string, name: string) => {
    const index = results.findIndex(({ tool_call_id }) => tool_call_id === id);
    return index < 0 ? name : nameOfResult(index);
  };
  const marked = calls.map(({ id, name }) => ({ id, name: nameOf(id, name), arguments: { command: answer } }));
  return withLast(past, { content: content ? words : '', tool_calls: marked });
}

/** Whether a template keeps reasoning is another question. */
export function withoutThoughts(past: Past): Past {
  const messages = past.messages.map(({ reasoning: _, ...message }) => ({ ...message, content: message.content.replace(thought, '') }));
  return { ...past, messages };
}

function withLast(past: Past, turn: Pick<Message, 'content' | 'tool_calls'>): Past {
  const { reasoning } = past.messages.at(-1) ?? {};
  return { ...past, messages: [...past.messages.slice(0, -1), { role: 'assistant', ...definedOf({ reasoning }), ...turn }] };
}
