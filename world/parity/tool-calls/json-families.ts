// The families whose calls are JSON between marks.

import { type ParserFamily, thinkTags, toJson, toJsonCall, type WrittenCall } from './family.ts';

const between = (open: string, close: string, joint = '\n') => ({
  write: (calls: readonly WrittenCall[]) => calls.map((call) => `${open}${toJsonCall(call)}${close}`).join(joint),
});
const list = (open: string, close: string) => ({
  write: (calls: readonly WrittenCall[]) => `${open}[${calls.map((call) => toJsonCall(call)).join(', ')}]${close}`,
});
const hermesTokens = ['<think>', '</think>', '<tool_call>', '</tool_call>'];
const deepSeekTokens = ['calls▁begin', 'calls▁end', 'call▁begin', 'call▁end', 'sep'].map((part) => `<｜tool▁${part}｜>`);
const kimiTokens = ['calls_section_begin', 'calls_section_end', 'call_begin', 'call_argument_begin', 'call_end'].map(
  (part) => `<|tool_${part}|>`,
);
const plamo = (part: string) => `<|plamo:${part}:plamo|>`;

function writeDeepSeek(toCall: (call: WrittenCall) => string) {
  return (calls: readonly WrittenCall[]) =>
    `<｜tool▁calls▁begin｜>${calls.map((call) => `<｜tool▁call▁begin｜>${toCall(call)}<｜tool▁call▁end｜>`).join('\n')}<｜tool▁calls▁end｜>`;
}

export const jsonFamilies: readonly ParserFamily[] = [
  {
    ours: 'hermes',
    tool: 'hermes',
    reasoning: 'qwen3',
    think: thinkTags,
    tokens: hermesTokens,
    ...between('<tool_call>\n', '\n</tool_call>'),
  },
  { ours: 'hermes', tool: 'granite4', tokens: hermesTokens, ...between('<tool_call>\n', '\n</tool_call>') },
  {
    ours: 'ernie45',
    tool: 'ernie45',
    reasoning: 'ernie45',
    think: thinkTags,
    tokens: [...hermesTokens, '<response>', '</response>'],
    say: (text) => `\n\n<response>\n${text}\n</response>\n`,
    ...between('\n<tool_call>\n', '\n</tool_call>\n'),
  },
  {
    ours: 'longcat',
    tool: 'longcat',
    tokens: ['<longcat_tool_call>', '</longcat_tool_call>'],
    ...between('<longcat_tool_call>\n', '\n</longcat_tool_call>'),
  },
  {
    ours: 'deepseek-v3',
    tool: 'deepseek_v3',
    reasoning: 'deepseek_r1',
    think: thinkTags,
    tokens: ['<think>', '</think>', ...deepSeekTokens],
    write: writeDeepSeek(({ name, arguments: args }) => `function<｜tool▁sep｜>${name}\n\`\`\`json\n${toJson(args)}\n\`\`\``),
  },
  {
    ours: 'deepseek-v3.1',
    tool: 'deepseek_v31',
    reasoning: 'deepseek_r1',
    think: thinkTags,
    tokens: ['<think>', '</think>', ...deepSeekTokens],
    write: writeDeepSeek(({ name, arguments: args }) => `${name}<｜tool▁sep｜>${toJson(args)}`),
  },
  {
    ours: 'kimi-k2',
    tool: 'kimi_k2',
    reasoning: 'kimi_k2',
    think: thinkTags,
    tokens: ['<think>', '</think>', ...kimiTokens],
    write: (calls) =>
      `<|tool_calls_section_begin|>${calls.map(({ name, arguments: args }, at) => `<|tool_call_begin|>functions.${name}:${at}<|tool_call_argument_begin|>${toJson(args)}<|tool_call_end|>`).join('')}<|tool_calls_section_end|>`,
  },
  {
    ours: 'mistral',
    tool: 'mistral',
    reasoning: 'mistral',
    think: ['[THINK]', '[/THINK]'],
    tokens: ['[TOOL_CALLS]', '[ARGS]', '[CALL_ID]', '[THINK]', '[/THINK]'],
    write: (calls) => calls.map(({ name, arguments: args }) => `[TOOL_CALLS]${name}[ARGS]${toJson(args)}`).join(''),
  },
  { ours: 'mistral', tool: 'mistral', tokens: ['[TOOL_CALLS]'], ...list('[TOOL_CALLS] ', '') },
  {
    ours: 'llama3-json',
    tool: 'llama3_json',
    tokens: ['<|python_tag|>'],
    write: (calls) => calls.map((call) => toJsonCall(call, 'parameters')).join('; '),
  },
  { ours: 'llama3-json', tool: 'xlam', tokens: [], ...list('', '') },
  {
    ours: 'cohere',
    tool: 'cohere_command3',
    reasoning: 'cohere_command3',
    think: ['<|START_THINKING|>', '<|END_THINKING|>'],
    tokens: ['THINKING', 'ACTION', 'RESPONSE'].flatMap((part) => [`<|START_${part}|>`, `<|END_${part}|>`]),
    say: (text) => `<|START_RESPONSE|>${text}<|END_RESPONSE|>`,
    write: (calls) =>
      `<|START_ACTION|>[\n${calls.map(({ name, arguments: args }, at) => `    {"tool_call_id": "${at}", "tool_name": "${name}", "parameters": ${toJson(args)}}`).join(',\n')}\n]<|END_ACTION|>`,
  },
  {
    ours: 'apertus',
    tool: 'apertus',
    tokens: ['<|tools_prefix|>', '<|tools_suffix|>', '<|inner_prefix|>', '<|inner_suffix|>'],
    write: (calls) =>
      `<|tools_prefix|>[${calls.map(({ name, arguments: args }) => `{"${name}": ${toJson(args)}}`).join(', ')}]<|tools_suffix|>`,
  },
  { ours: 'granite', tool: 'granite', tokens: ['<|tool_call|>'], ...list('<|tool_call|>', '') },
  { ours: 'granite', tool: 'granite-20b-fc', tokens: ['<function_call>'], ...between('<function_call> ', '', '') },
  {
    ours: 'gigachat',
    tool: 'gigachat3',
    tokens: ['<|function_call|>', '<|message_sep|>', '<|role_sep|>'],
    isSingle: true,
    ...between('<|function_call|>', ''),
  },
  { ours: 'phi4-mini', tool: 'phi4_mini_json', tokens: [], ...list('functools', '') },
  {
    ours: 'internlm2',
    tool: 'internlm',
    tokens: ['<|action_start|>', '<|plugin|>', '<|action_end|>'],
    isSingle: true,
    write: (calls) => calls.map((call) => `<|action_start|><|plugin|>\n${toJsonCall(call, 'parameters')}<|action_end|>`).join(''),
  },
  { ours: 'tool-calls-list', tool: 'jamba', tokens: ['<tool_calls>', '</tool_calls>'], ...list('<tool_calls>', '</tool_calls>') },
  {
    ours: 'tool-calls-list',
    tool: 'hunyuan_a13b',
    reasoning: 'hunyuan_a13b',
    think: ['<think>\n', '\n</think>\n<answer>\n'],
    tokens: [],
    ...list('<tool_calls>', '</tool_calls>'),
  },
  {
    ours: 'plamo3',
    tool: 'plamo3',
    reasoning: 'plamo3',
    think: [plamo('begin_think'), plamo('end_think')],
    tokens: ['<|plamo:begin_', '<|plamo:end_', ':plamo|>', '<|plamo:tag|>', '<|plamo:msg|>', '<|plamo:constrain|>'],
    write: (calls) =>
      `${plamo('begin_tool_requests')}${calls.map(({ name, arguments: args }) => `${plamo('begin_tool_request')}${plamo('begin_tool_name')}${name}${plamo('end_tool_name')}${plamo('begin_tool_arguments')}<|plamo:constrain|>json<|plamo:msg|>${toJson(args)}${plamo('end_tool_arguments')}${plamo('end_tool_request')}`).join('')}${plamo('end_tool_requests')}`,
  },
  {
    ours: 'inkling',
    tool: 'inkling',
    reasoning: 'inkling',
    think: ['<|content_thinking|>', '<|end_message|><|message_model|>'],
    tokens: ['message_model', 'content_thinking', 'content_text', 'content_invoke_tool_json', 'end_message'].map((part) => `<|${part}|>`),
    say: (text) => `<|content_text|>${text}<|end_message|><|message_model|>`,
    write: (calls) =>
      calls.map((call) => `<|content_invoke_tool_json|>${toJsonCall(call, 'args')}<|end_message|>`).join('<|message_model|>'),
  },
  {
    ours: 'k2-horizon',
    tool: 'k2_horizon',
    kwargs: { tool_call_format: 'json' },
    tokens: ['<ifm|tool_calls>', '</ifm|tool_calls>', '<ifm|tool_call>', '</ifm|tool_call>'],
    write: (calls) =>
      `<ifm|tool_calls>${calls.map((call) => `<ifm|tool_call>${toJsonCall(call)}</ifm|tool_call>`).join('')}</ifm|tool_calls>`,
  },
];
