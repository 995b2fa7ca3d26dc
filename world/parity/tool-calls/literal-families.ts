// The families whose arguments are literals, and gpt-oss, whose calls are messages.

import { type ParserFamily, toJson, type WrittenCall, writeArguments } from './family.ts';

/** A Python literal. */
function toPython(value: unknown): string {
  if (value === null) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (Array.isArray(value)) return `[${value.map(toPython).join(', ')}]`;
  if (typeof value === 'object')
    return `{${Object.entries(value)
      .map(([key, inner]) => `${JSON.stringify(key)}: ${toPython(inner)}`)
      .join(', ')}}`;
  return JSON.stringify(value);
}

const toPythonCall = (call: WrittenCall) => `${call.name}(${writeArguments(call, (key, value) => `${key}=${toPython(value)}`, ', ')})`;

/** Gemma's literal, with its own quotes. */
function toBraces(value: unknown, quote: string): string {
  if (typeof value === 'string') return `${quote}${value}${quote}`;
  if (Array.isArray(value)) return `[${value.map((item) => toBraces(item, quote)).join(',')}]`;
  if (typeof value === 'object' && value !== null)
    return `{${Object.entries(value)
      .map(([key, inner]) => `${key}:${toBraces(inner, quote)}`)
      .join(',')}}`;
  return JSON.stringify(value);
}

const writeBraces = (open: string, close: string, quote: string) => (calls: readonly WrittenCall[]) =>
  calls
    .map((call) => `${open}call:${call.name}{${writeArguments(call, (key, value) => `${key}:${toBraces(value, quote)}`, ',')}}${close}`)
    .join('');
const writeList = (open: string, close: string) => (calls: readonly WrittenCall[]) =>
  `${open}[${calls.map(toPythonCall).join(', ')}]${close}`;

export const literalFamilies: readonly ParserFamily[] = [
  { ours: 'pythonic', tool: 'pythonic', tokens: [], write: writeList('', '') },
  {
    ours: 'pythonic',
    tool: 'llama4_pythonic',
    tokens: ['<|python_start|>', '<|python_end|>'],
    write: writeList('<|python_start|>', '<|python_end|>'),
  },
  {
    ours: 'pythonic',
    tool: 'olmo3',
    reasoning: 'olmo3',
    think: ['<think>', '</think>'],
    tokens: [],
    write: (calls) => `<function_calls>\n${calls.map(toPythonCall).join('\n')}\n</function_calls>`,
  },
  {
    ours: 'lfm2',
    tool: 'lfm2',
    tokens: ['<|tool_call_start|>', '<|tool_call_end|>'],
    write: writeList('<|tool_call_start|>', '<|tool_call_end|>'),
  },
  {
    ours: 'gemma4',
    tool: 'gemma4',
    reasoning: 'gemma4',
    think: ['<|channel>thought\n', '<channel|>'],
    tokens: ['<|tool_call>', '<tool_call|>', '<|channel>', '<channel|>', '<|"|>'],
    write: writeBraces('<|tool_call>', '<tool_call|>', '<|"|>'),
  },
  {
    ours: 'functiongemma',
    tool: 'functiongemma',
    tokens: ['<start_function_call>', '<end_function_call>', '<escape>'],
    write: writeBraces('<start_function_call>', '<end_function_call>', '<escape>'),
  },
  {
    ours: 'harmony',
    tool: 'openai',
    reasoning: 'openai_gptoss',
    think: ['<|channel|>analysis<|message|>', '<|end|><|start|>assistant'],
    tokens: ['<|start|>', '<|end|>', '<|message|>', '<|channel|>', '<|constrain|>', '<|call|>', '<|return|>'],
    say: (text) => `<|channel|>commentary<|message|>${text}<|end|><|start|>assistant`,
    write: (calls) =>
      calls
        .map(
          ({ name, arguments: args }) => `<|channel|>commentary to=functions.${name} <|constrain|>json<|message|>${toJson(args)}<|call|>`,
        )
        .join('<|start|>assistant'),
  },
];
