// The families whose calls are elements with one element for each argument.

import { parseJson } from './tool-calls.ts';
import { makeXmlParser } from './xml-calls.ts';

const name = `([^\\s<>"'=]{1,200})`;

const miniMaxMark = ']<]minimax[>[';

interface Element {
  readonly name: string;
  readonly children: [string, unknown][];
  text: string;
}

/** Lists are <item> elements, objects elements named after their keys. */
function readMiniMaxElements(value: string): unknown {
  const [, ...pieces] = value.split(miniMaxMark);
  const root: Element = { name: '', children: [], text: '' };
  const open = [root];
  for (const piece of pieces) {
    const [, slash, tag, text = ''] = /^<(\/?)([^\s<>/]{1,200})>([\s\S]*)$/.exec(piece) ?? [];
    const top = open.at(-1);
    if (tag === undefined || !top) return undefined;
    if (slash === '') open.push({ name: tag, children: [], text });
    else {
      if (top.name !== tag || open.length === 1) return undefined;
      open.pop();
      open.at(-1)?.children.push([tag, toElementValue(top)]);
    }
  }
  return pieces.length === 0 || open.length !== 1 ? undefined : toElementValue(root);
}

function toElementValue({ children, text }: Element): unknown {
  if (children.length > 0)
    return children.every(([key]) => key === 'item') ? children.map(([, item]) => item) : Object.fromEntries(children);
  const value = parseJson(text);
  return value.ok ? value.json : text;
}

export const xmlParsers = [
  makeXmlParser('qwen3-coder', {
    call: new RegExp(`<function=[ "']{0,4}${name}[ "']{0,4}>`),
    callClose: '</function>',
    argument: /<parameter=([^>\n]{1,200})>/,
    argumentClose: '</parameter>',
    wrappers: ['<tool_call>', '</tool_call>'],
    hasLines: true,
  }),
  makeXmlParser('seed-oss', {
    call: new RegExp(`<function=${name}>`),
    callClose: '</function>',
    argument: /<parameter=([^>\n]{1,200})>/,
    argumentClose: '</parameter>',
    wrappers: ['<seed:tool_call>', '</seed:tool_call>'],
    reasoning: { open: '<seed:think>', close: '</seed:think>' },
  }),
  makeXmlParser('glm', {
    call: /<tool_call>\s{0,16}([^\s<>"'{]{1,200})(?=\s{0,64}<arg_key>|\s{0,64}<\/tool_call>)/,
    callClose: '</tool_call>',
    argument: /<arg_key>([^<]{1,200})<\/arg_key>\s*<arg_value>/,
    argumentClose: '</arg_value>',
    wrappers: [],
  }),
  makeXmlParser('hunyuan-v3', {
    call: /<tool_call:opensource>\s{0,16}([^\s<>"'{]{1,200})<tool_sep:opensource>/,
    callClose: '</tool_call:opensource>',
    argument: /<arg_key:opensource>([^<]{1,200})<\/arg_key:opensource>\s*<arg_value:opensource>/,
    argumentClose: '</arg_value:opensource>',
    wrappers: ['<tool_calls:opensource>', '</tool_calls:opensource>'],
    reasoning: { open: '<think:opensource>', close: '</think:opensource>' },
  }),
  makeXmlParser('minimax-m2', {
    call: /<invoke name="([^"]{1,200})">/,
    callClose: '</invoke>',
    argument: /<parameter name="([^"]{1,200})">/,
    argumentClose: '</parameter>',
    wrappers: ['<minimax:tool_call>', '</minimax:tool_call>'],
  }),
  makeXmlParser('minimax-m3', {
    call: /\]<\]minimax\[>\[<invoke name="([^"]{1,200})">/,
    callClose: ']<]minimax[>[</invoke>',
    argument: /\]<\]minimax\[>\[<([^\s<>/]{1,200})>/,
    argumentClose: (key) => `]<]minimax[>[</${key}>`,
    wrappers: [']<]minimax[>[<tool_call>', ']<]minimax[>[</tool_call>'],
    reasoning: { open: '<mm:think>', close: '</mm:think>' },
    readNested: readMiniMaxElements,
  }),
  makeXmlParser('deepseek-v3.2', {
    call: /<｜DSML｜invoke name="([^"]{1,200})">/,
    callClose: '</｜DSML｜invoke>',
    argument: /<｜DSML｜parameter name="([^"]{1,200})"(?: string="(true|false)")?>/,
    argumentClose: '</｜DSML｜parameter>',
    wrappers: ['<｜DSML｜function_calls>', '</｜DSML｜function_calls>', '<｜DSML｜tool_calls>', '</｜DSML｜tool_calls>'],
  }),
  makeXmlParser('kimi-k3', {
    call: /<\|open\|>call tool="([^"]{1,200})"[^<>]{0,40}<\|sep\|>/,
    callClose: '<|close|>call<|sep|>',
    argument: /<\|open\|>argument key="([^"]{1,200})"(?: type="(\w+)")?<\|sep\|>/,
    argumentClose: '<|close|>argument<|sep|>',
    wrappers: ['tools', 'response', 'message'].flatMap((part) => [`<|open|>${part}<|sep|>`, `<|close|>${part}<|sep|>`]),
    reasoning: { open: '<|open|>think<|sep|>', close: '<|close|>think<|sep|>' },
  }),
  makeXmlParser('muse', {
    call: /<atem:invoke name="([^"]{1,200})">/,
    callClose: '</atem:invoke>',
    argument: /<atem:parameter name="([^"]{1,200})">/,
    argumentClose: '</atem:parameter>',
    wrappers: ['<atem:function_calls>', '</atem:function_calls>', '<|message|>', '<|eom|>'],
    frame: /(?:<\|start\|>assistant)?\s{0,4}to=[^\s<]{1,200}<\|message\|>/,
  }),
  makeXmlParser('minicpm5', {
    call: /<function name="([^"]{1,200})">/,
    callClose: '</function>',
    argument: /<param name="([^"]{1,200})">/,
    argumentClose: '</param>',
    wrappers: [],
    hasCdata: true,
  }),
] as const;
