// How the calls of each format are recognised while a turn is sampled, so that text before them is shown at once and text arguments as they
// are sampled. A format without marks is shown when the turn has ended: what is text in it is known only then.

import type { ReasoningTags, ToolFormat } from '../tool-calls/tool-calls.ts';

export interface CallMarks {
  /** What calls begin with, and everything that may stand before them. */
  readonly opens: readonly string[];
  /** Begin a call only where the text of the turn begins; elsewhere they may. */
  readonly starts?: readonly string[];
  /** After it one call can be read, and text may follow. */
  readonly close?: string;
  /** Marks that are no content. */
  readonly frames?: readonly string[];
  /** The quotes of strings in arguments whose brackets and strings are closed as those of JSON are. */
  readonly quotes?: '"' | `"'`;
  /** What completes a call that is cut inside a text argument, in the other formats. */
  readonly tails?: readonly string[];
  /** Several tags for reasoning, where the parser names only one. */
  readonly thoughts?: { readonly opens: readonly string[]; readonly closes: readonly string[] };
  /** Whether there may be reasoning after text. */
  readonly thinksLater?: true;
  /** The end of the generation prompt that belongs to the turn. */
  readonly prefix?: string;
}

const json = (...opens: string[]) => ({ opens, quotes: '"' as const });
const xml = (tail: string, ...opens: string[]) => ({ opens, tails: [tail] });
const tagged = (name: string) => ({ ...json(`<${name}>`), close: `</${name}>`, thinksLater: true as const });
const dsml = (mark: string) => xml(`</${mark}parameter></${mark}invoke>`, `<${mark}`);
const deepseek = json('<｜tool▁calls▁begin｜>', '<｜tool▁call▁begin｜>');
const ifmThoughts = ['ifm|think', 'ifm|think_fast', 'ifm|think_faster'];

export const callMarks: Readonly<Record<ToolFormat, CallMarks | undefined>> = {
  hermes: tagged('tool_call'),
  longcat: tagged('longcat_tool_call'),
  ernie45: { ...tagged('tool_call'), frames: ['<response>', '</response>'] },
  'qwen3-coder': xml('\n</parameter>\n</function>', '<tool_call>', '<function='),
  'llama3-json': json('<|python_tag|>', '{', '[', '```'),
  mistral: json('[TOOL_CALLS]'),
  fenced: xml('\n```', '```'),
  pythonic: { opens: ['<|python_start|>', '<function_calls>'], starts: ['['], quotes: `"'` },
  lfm2: { opens: ['<|tool_call_start|>'], quotes: `"'` },
  'deepseek-v3': deepseek,
  'deepseek-v3.1': deepseek,
  'deepseek-v3.2': dsml('｜DSML｜'),
  'deepseek-v4.1': dsml('｜DSML｜ '),
  glm: xml('</arg_value></tool_call>', '<tool_call>'),
  'kimi-k2': json('<|tool_calls_section_begin|>', '<|tool_call_begin|>'),
  'kimi-k3': {
    ...xml('<|close|>argument<|sep|><|close|>call<|sep|>', '<|open|>tools<|sep|>', '<|open|>call '),
    frames: ['response', 'message'].flatMap((part) => [`<|open|>${part}<|sep|>`, `<|close|>${part}<|sep|>`]),
  },
  'minimax-m2': xml('</parameter></invoke>', '<minimax:tool_call>', '<invoke name='),
  'minimax-m3': { opens: [']<]minimax[>[<tool_call>', ']<]minimax[>[<invoke '] },
  harmony: {
    ...json('<|channel|>commentary to=', '<|channel|>analysis to=', 'to=functions.'),
    frames: ['<|start|>assistant', '<|channel|>final<|message|>', '<|channel|>commentary<|message|>', '<|end|>', '<|return|>'],
    thoughts: { opens: ['<|channel|>analysis<|message|>'], closes: ['<|end|>'] },
    thinksLater: true,
  },
  gemma4: xml('<|"|>}<tool_call|>', '<|tool_call>'),
  functiongemma: xml('<escape>}<end_function_call>', '<start_function_call>'),
  nemotron: json('<TOOLCALL>'),
  granite: json('<|tool_call|>', '<function_call>'),
  'phi4-mini': json('functools'),
  'seed-oss': xml('</parameter></function>', '<seed:tool_call>', '<function='),
  cohere: {
    ...json('<|START_ACTION|>', 'Action:'),
    frames: ['<|START_RESPONSE|>', '<|END_RESPONSE|>', '<|START_TEXT|>', '<|END_TEXT|>'],
  },
  apertus: json('<|tools_prefix|>'),
  'tool-calls-list': { ...json('<tool_calls>'), frames: ['<answer>', '</answer>'] },
  internlm2: json('<|action_start|>'),
  solar: { ...json('<|tool_calls|>', '<|tool_call:begin|>'), frames: ['<|calls|>', '<|begin|>assistant', '<|content|>'] },
  'functionary-v3.1': json('<function='),
  'functionary-v3.2': { ...json('>>>'), frames: ['>>>all\n'], prefix: '>>>' },
  gigachat: { ...json('<|function_call|>', 'function call<|role_sep|>'), frames: ['<|message_sep|>'] },
  minicpm5: xml('</param></function>', '<function name='),
  plamo3: json(...['requests', 'request', 'name'].map((part) => `<|plamo:begin_tool_${part}:plamo|>`)),
  inkling: {
    ...json('<|content_invoke_tool_json|>'),
    frames: ['<|message_model|>', '<|content_text|>', '<|end_message|>', '<|content_model_end_sampling|>'],
    thinksLater: true,
  },
  'k2-horizon': {
    ...json('<ifm|tool_calls>', '<ifm|tool_call>'),
    tails: ['</ifm|arg_value></ifm|tool_call>'],
    thoughts: { opens: ifmThoughts.map((tag) => `<${tag}>`), closes: ifmThoughts.map((tag) => `</${tag}>`) },
  },
  dots: { ...json('<dots_function_call>', '<invoke name'), tails: ['</parameter></invoke>'] },
  step3: xml('</steptml:parameter></steptml:invoke>', '<｜tool_calls_begin｜>', '<｜tool_call_begin｜>', '<steptml:invoke '),
  // Their tags end with a suffix of the checkpoint, or a turn is several messages with recipients of any name.
  'hunyuan-v3': undefined,
  'hunyuan-v4': undefined,
  muse: undefined,
};

export function thoughtsOf(marks: CallMarks, reasoning: ReasoningTags): NonNullable<CallMarks['thoughts']> {
  return marks.thoughts ?? { opens: [reasoning.open], closes: [reasoning.close] };
}
