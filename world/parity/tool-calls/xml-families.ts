// The families whose calls are elements with one element for each argument.

import { type ParserFamily, thinkTags, toText, type WrittenCall, writeArguments } from './family.ts';

const thinkTokens = ['<think>', '</think>'];
const toolTokens = ['<tool_call>', '</tool_call>'];
const each = (calls: readonly WrittenCall[], write: (call: WrittenCall) => string, joint = '\n') => calls.map(write).join(joint);

/** Qwen3-Coder's, with its newlines or without. */
function writeFunctions(wrapper: string, hasLines: boolean) {
  const line = hasLines ? '\n' : '';
  return (calls: readonly WrittenCall[]) =>
    each(
      calls,
      (call) =>
        `<${wrapper}>\n<function=${call.name}>\n${writeArguments(call, (key, value) => `<parameter=${key}>${line}${toText(value)}${line}</parameter>\n`)}</function>\n</${wrapper}>`,
    );
}

function writeInvokes(mark: string, [open, close]: readonly [string, string], hasTypes = false) {
  return (calls: readonly WrittenCall[]) => {
    const invokes = each(calls, (call) => {
      const args = writeArguments(call, (key, value) => {
        const type = hasTypes ? ` string="${typeof value === 'string'}"` : '';
        return `<${mark}parameter name="${key}"${type}>${toText(value)}</${mark}parameter>\n`;
      });
      return `<${mark}invoke name="${call.name}">\n${args}</${mark}invoke>`;
    });
    return `${open}\n${invokes}\n${close}`;
  };
}

/** GLM's, with a suffix in every tag. */
function writeKeys(tag: (name: string) => string, { line = '', sep = '' } = {}) {
  return (calls: readonly WrittenCall[]) =>
    each(
      calls,
      (call) =>
        `<${tag('tool_call')}>${call.name}${sep}${line}${writeArguments(call, (key, value) => `<${tag('arg_key')}>${key}</${tag('arg_key')}>${line}<${tag('arg_value')}>${toText(value)}</${tag('arg_value')}>${line}`)}</${tag('tool_call')}>`,
      line,
    );
}

const plain = (name: string) => name;
const suffixed = (suffix: string) => (name: string) => `${name}${suffix}`;
const hunyuanTokens = (suffix: string) =>
  ['think', 'tool_calls', 'tool_call', 'arg_key', 'arg_value'].flatMap((name) => [`<${name}${suffix}>`, `</${name}${suffix}>`]);
const inSection = (suffix: string, write: (calls: readonly WrittenCall[]) => string) => (calls: readonly WrittenCall[]) =>
  `<tool_calls${suffix}>\n${write(calls)}\n</tool_calls${suffix}>`;
const glmTokens = [...thinkTokens, ...toolTokens, '<arg_key>', '</arg_key>', '<arg_value>', '</arg_value>'];
const mark = ']<]minimax[>[';
const dsml = ['<｜DSML｜tool_calls>', '</｜DSML｜tool_calls>'] as const;

export const xmlFamilies: readonly ParserFamily[] = [
  { ours: 'qwen3-coder', tool: 'qwen3_coder', reasoning: 'qwen3', write: writeFunctions('tool_call', true) },
  { ours: 'qwen3-coder', tool: 'qwen3_coder', reasoning: 'nemotron_v3', write: writeFunctions('tool_call', true) },
  { ours: 'qwen3-coder', tool: 'mimo', reasoning: 'mimo', write: writeFunctions('tool_call', false) },
  { ours: 'qwen3-coder', tool: 'step3p5', reasoning: 'step3p5', write: writeFunctions('tool_call', true) },
  { ours: 'glm', tool: 'glm45', reasoning: 'glm45', tokens: glmTokens, write: writeKeys(plain, { line: '\n' }) },
  { ours: 'glm', tool: 'glm47', reasoning: 'glm47', tokens: glmTokens, write: writeKeys(plain) },
  { ours: 'glm', tool: 'ling3', reasoning: 'ling3', tokens: glmTokens, write: writeKeys(plain) },
  {
    ours: 'glm',
    tool: 'poolside_v1',
    reasoning: 'poolside_v1',
    tokens: [...glmTokens, '<assistant>'],
    kwargs: { enable_thinking: true },
    write: writeKeys(plain, { line: '\n' }),
  },
].map(
  ({ tokens = [...thinkTokens, ...toolTokens], ...family }): ParserFamily => ({
    ...family,
    ours: family.ours as ParserFamily['ours'],
    tokens,
    think: thinkTags,
  }),
);

export const otherXmlFamilies: readonly ParserFamily[] = [
  {
    ours: 'seed-oss',
    tool: 'seed_oss',
    reasoning: 'seed_oss',
    think: ['<seed:think>', '</seed:think>'],
    tokens: ['<seed:think>', '</seed:think>', '<seed:tool_call>', '</seed:tool_call>'],
    write: writeFunctions('seed:tool_call', false),
  },
  {
    ours: 'hunyuan-v3',
    tool: 'hy_v3',
    reasoning: 'hy_v3',
    think: ['<think:opensource>', '</think:opensource>'],
    tokens: [...hunyuanTokens(':opensource'), '<tool_sep:opensource>'],
    tokenizerConfig: { token_suffix: ':opensource' },
    kwargs: { reasoning_effort: 'high' },
    write: inSection(':opensource', writeKeys(suffixed(':opensource'), { line: '\n', sep: '<tool_sep:opensource>' })),
  },
  {
    ours: 'hunyuan-v4',
    tool: 'hy_v4',
    reasoning: 'hy_v4',
    think: ['<think:6124c78e>', '</think:6124c78e>'],
    tokens: hunyuanTokens(':6124c78e'),
    write: inSection(':6124c78e', writeKeys(suffixed(':6124c78e'))),
  },
  {
    ours: 'minimax-m2',
    tool: 'minimax_m2',
    reasoning: 'minimax_m2',
    think: thinkTags,
    tokens: [...thinkTokens, '<minimax:tool_call>', '</minimax:tool_call>'],
    write: writeInvokes('', ['<minimax:tool_call>', '</minimax:tool_call>']),
  },
  {
    ours: 'minimax-m3',
    tool: 'minimax_m3',
    reasoning: 'minimax_m3',
    think: ['<mm:think>', '</mm:think>'],
    tokens: ['<mm:think>', '</mm:think>'],
    write: (calls) =>
      `${mark}<tool_call>\n${each(calls, (call) => `${mark}<invoke name="${call.name}">${writeArguments(call, (key, value) => `${mark}<${key}>${toElements(value)}${mark}</${key}>`)}${mark}</invoke>\n`, '')}${mark}</tool_call>`,
  },
  {
    ours: 'deepseek-v3.2',
    tool: 'deepseek_v32',
    tokens: ['<｜DSML｜function_calls>', '</｜DSML｜function_calls>'],
    write: writeInvokes('｜DSML｜', ['<｜DSML｜function_calls>', '</｜DSML｜function_calls>'], true),
  },
  {
    ours: 'deepseek-v3.2',
    tool: 'deepseek_v4',
    reasoning: 'deepseek_v4',
    think: thinkTags,
    tokens: thinkTokens,
    write: writeInvokes('｜DSML｜', dsml, true),
  },
  {
    ours: 'deepseek-v4.1',
    tool: 'deepseek_v41',
    reasoning: 'deepseek_v41',
    think: thinkTags,
    tokens: thinkTokens,
    write: writeInvokes('｜DSML｜ ', ['<｜DSML｜ calls>', '</｜DSML｜ calls>'], true),
  },
  {
    ours: 'kimi-k3',
    tool: 'kimi_k3',
    reasoning: 'kimi_k3',
    think: ['<|open|>think<|sep|>', '<|close|>think<|sep|>'],
    tokens: ['<|open|>', '<|close|>', '<|sep|>'],
    say: (text) => `<|open|>response<|sep|>${text}<|close|>response<|sep|>`,
    write: (calls) =>
      `<|open|>tools<|sep|>${calls.map((call, at) => `<|open|>call tool="${call.name}" index="${at}"<|sep|>${writeArguments(call, (key, value) => `<|open|>argument key="${key}" type="${typeOf(value)}"<|sep|>${toText(value)}<|close|>argument<|sep|>`)}<|close|>call<|sep|>`).join('')}<|close|>tools<|sep|>`,
  },
  {
    ours: 'muse',
    tool: 'muse_glimmer',
    reasoning: 'muse_glimmer',
    think: [' to=self<|message|>', '<|eom|><|start|>assistant'],
    tokens: ['<|message|>', '<|eom|>', '<|start|>', '<|eot|>'],
    say: (text) => ` to=user<|message|>${text}<|eom|><|start|>assistant`,
    write: (calls) =>
      ` to=${calls[0]?.name}<|message|>${writeInvokes('atem:', ['<atem:function_calls>', '</atem:function_calls>'])(calls)}`,
  },
  {
    ours: 'minicpm5',
    tool: 'minicpm5',
    tokens: [],
    write: (calls) =>
      each(
        calls,
        (call) =>
          `<function name="${call.name}">${writeArguments(call, (key, value) => `<param name="${key}">${toText(value)}</param>`)}</function>`,
        '',
      ),
  },
  { ours: 'dots', tool: 'dots', tokens: [], write: writeInvokes('', ['<dots_function_call>', '</dots_function_call>']) },
  {
    ours: 'step3',
    tool: 'step3',
    reasoning: 'step3',
    prompt: '<think>',
    think: ['', '</think>'],
    tokens: thinkTokens,
    write: (calls) =>
      `<｜tool_calls_begin｜>${each(calls, (call) => `<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="${call.name}">${writeArguments(call, (key, value) => `<steptml:parameter name="${key}">${toText(value)}</steptml:parameter>`)}</steptml:invoke><｜tool_call_end｜>`, '')}<｜tool_calls_end｜>`,
  },
  {
    ours: 'k2-horizon',
    tool: 'k2_horizon',
    reasoning: 'k2_horizon',
    think: ['<ifm|think>', '</ifm|think>'],
    tokens: ['<ifm|think>', '</ifm|think>', '<ifm|tool_calls>', '</ifm|tool_calls>'],
    write: (calls) => `<ifm|tool_calls>${writeKeys((name) => `ifm|${name}`)(calls)}</ifm|tool_calls>`,
  },
];

function typeOf(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'array' : typeof value;
}

/** MiniMax-M3 writes lists as <item> elements and objects as elements named after their keys. */
function toElements(value: unknown): string {
  if (Array.isArray(value)) return value.map((item) => `${mark}<item>${toElements(item)}${mark}</item>`).join('');
  if (typeof value === 'object' && value !== null)
    return Object.entries(value)
      .map(([key, inner]) => `${mark}<${key}>${toElements(inner)}${mark}</${key}>`)
      .join('');
  return toText(value);
}
