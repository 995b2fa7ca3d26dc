// The made-up pasts after which a template is asked what it writes next. A past ends with an assistant's turn that holds `answer`, in its
// text or in the arguments of its calls.

import type { Message, ToolCall, ToolSpec } from '@millrace/protocol';
import { toCallId } from '../tool-calls/tool-calls.ts';
import { nameOfResult } from './template-skeleton.ts';

/** No template and no text of a user contains it. */
export const answer = 'answer\u{e002}';

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

const makeCall = (index: number, name = 'bash'): ToolCall => ({ id: toCallId(index), name, arguments: { command: answer } });
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

/** From the fullest to the simplest, because some templates accept no system message and some no tools. */
export const longPasts: readonly Past[] = [
  { messages: [system, ...talk], tools: exampleTools },
  { messages: talk, tools: exampleTools },
  { messages: [system, ...plainTalk], tools: [] },
  { messages: plainTalk, tools: [] },
];

/** The past whose last turn made the calls that these results answer, with the names and ids of the results. */
export function withCalls(past: Past, results: readonly Message[], count = results.length): Past {
  const calls = results
    .slice(0, count)
    .map(({ tool_call_id = toCallId(0) }, index): ToolCall => ({ ...makeCall(0, nameOfResult(index)), id: tool_call_id }));
  const last: Message = { role: 'assistant', content: '', tool_calls: calls };
  return { messages: [...past.messages.slice(0, -1), last], tools: exampleTools };
}
