// The families whose calls are elements with one element for each argument.

import { type HermesTags, makeHermesParser } from './hermes.ts';
import {
  emptyFindings,
  type Findings,
  type ParsedTurn,
  parseJson,
  type ToolCallParser,
  type ToolFormat,
  toCallId,
  toParsedTurn,
} from './tool-calls.ts';
import { makeXmlParser, type XmlTags } from './xml-calls.ts';

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

/** Hunyuan's tags end with a suffix of the checkpoint, for example `<tool_call:opensource>`, or with none. */
function makeHunyuanParser(name: ToolFormat, separator: string): ToolCallParser {
  const makeTags = (suffix: string): XmlTags => {
    const tag = (text: string) => text.replace('>', `${suffix}>`);
    const [open, key] = [RegExp.escape(tag('<tool_call>')), RegExp.escape(tag('<arg_key>'))];
    const after = separator === '' ? `(?=\\s{0,64}${key}|\\s{0,64}${RegExp.escape(tag('</tool_call>'))})` : RegExp.escape(tag(separator));
    return {
      call: new RegExp(`${open}\\s{0,16}([^\\s<>"'{]{1,200})${after}`),
      callClose: tag('</tool_call>'),
      argument: new RegExp(`${key}([^<]{1,200})${RegExp.escape(tag('</arg_key>'))}\\s*${RegExp.escape(tag('<arg_value>'))}`),
      argumentClose: tag('</arg_value>'),
      wrappers: [tag('<tool_calls>'), tag('</tool_calls>')],
      reasoning: { open: tag('<think>'), close: tag('</think>') },
    };
  };
  return {
    name,
    parse(text, tools) {
      const suffix = /<\/?(?:think|tool_calls?)(:[\w-]{1,40})>/.exec(text)?.[1] ?? '';
      return makeXmlParser(name, makeTags(suffix)).parse(text, tools);
    },
  };
}

function makeDsmlParser(name: ToolFormat, { mark, wrappers }: { mark: string; wrappers: readonly string[] }): ToolCallParser {
  return makeXmlParser(name, {
    call: new RegExp(`<${mark}invoke name="([^"<]{1,200})">`),
    callClose: `</${mark}invoke>`,
    argument: new RegExp(`<${mark}parameter name="([^"<]{1,200})"(?: string="(true|false)")?>`),
    argumentClose: `</${mark}parameter>`,
    wrappers: wrappers.flatMap((tag) => [`<${mark}${tag}>`, `</${mark}${tag}>`]),
    openers: wrappers.map((tag) => `<${mark}${tag}>`),
  });
}

const museCalls = makeXmlParser('muse', {
  call: /<atem:invoke name="([^"<]{1,200})">/,
  callClose: '</atem:invoke>',
  argument: /<atem:parameter name="([^"<]{1,200})">/,
  argumentClose: '</atem:parameter>',
  wrappers: ['<atem:function_calls>', '</atem:function_calls>'],
});

/** A turn of Muse is several messages, each with a recipient before it; one to itself is reasoning. */
const museParser: ToolCallParser = {
  name: 'muse',
  parse(text, tools) {
    const found = emptyFindings();
    for (const message of text.split(/<\|eo[mt]\|>/)) {
      const head = /^\s*(?:<\|start\|>\s{0,4}assistant)?\s{0,4}(?:to=([\w.-]{1,200}))?(?:<\|message\|>|$)/.exec(message);
      const body = message.slice(head?.[0].length ?? 0);
      if (head?.[1] === 'self') found.thoughts.push(body);
      else addTurn(found, museCalls.parse(body, tools));
    }
    return toParsedTurn(found);
  },
};

function addTurn(found: Findings, { content, reasoning, calls, malformed }: ParsedTurn): void {
  found.content.push(content, '\n');
  if (reasoning !== undefined) found.thoughts.push(reasoning);
  for (const call of calls) found.calls.push({ ...call, id: toCallId(found.calls.length) });
  found.malformed.push(...malformed);
}

interface EitherFormat {
  /** Whether the calls of a text are JSON. */
  readonly isJson: RegExp;
  readonly json: HermesTags;
  readonly xml: (text: string) => XmlTags;
}

/** Families that write calls in either of two ways. */
function makeEitherParser(name: ToolFormat, { isJson, json, xml }: EitherFormat): ToolCallParser {
  const jsonParser = makeHermesParser(name, json);
  return {
    name,
    parse: (text, tools) => (isJson.test(text) ? jsonParser : makeXmlParser(name, xml(text))).parse(text, tools),
  };
}

const ifmTags = { open: '<ifm|think>', close: '</ifm|think>' };

export const xmlParsers = [
  makeXmlParser('qwen3-coder', {
    call: new RegExp(`<function=[ "']{0,4}${name}[ "']{0,4}>`),
    callClose: '</function>',
    argument: /<parameter=([^<>\n]{1,200})>/,
    argumentClose: '</parameter>',
    wrappers: ['<tool_call>', '</tool_call>'],
    hasLines: true,
  }),
  makeXmlParser('seed-oss', {
    call: new RegExp(`<function=${name}>`),
    callClose: '</function>',
    argument: /<parameter=([^<>\n]{1,200})>/,
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
    openers: ['<tool_call>'],
  }),
  makeHunyuanParser('hunyuan-v3', '<tool_sep>'),
  makeHunyuanParser('hunyuan-v4', ''),
  makeXmlParser('minimax-m2', {
    call: /<invoke name="([^"<]{1,200})">/,
    callClose: '</invoke>',
    argument: /<parameter name="([^"<]{1,200})">/,
    argumentClose: '</parameter>',
    wrappers: ['<minimax:tool_call>', '</minimax:tool_call>'],
  }),
  makeXmlParser('minimax-m3', {
    call: /\]<\]minimax\[>\[<invoke name="([^"<]{1,200})">/,
    callClose: ']<]minimax[>[</invoke>',
    argument: /\]<\]minimax\[>\[<([^\s<>/]{1,200})>/,
    argumentClose: (key) => `]<]minimax[>[</${key}>`,
    wrappers: [']<]minimax[>[<tool_call>', ']<]minimax[>[</tool_call>'],
    reasoning: { open: '<mm:think>', close: '</mm:think>' },
    readNested: readMiniMaxElements,
  }),
  makeDsmlParser('deepseek-v3.2', { mark: '｜DSML｜', wrappers: ['function_calls', 'tool_calls', 'toolcalls', 'tool'] }),
  makeDsmlParser('deepseek-v4.1', { mark: '｜DSML｜ ', wrappers: ['calls'] }),
  makeXmlParser('kimi-k3', {
    call: /<\|open\|>call tool="([^"<]{1,200})"[^<>]{0,40}<\|sep\|>/,
    callClose: '<|close|>call<|sep|>',
    argument: /<\|open\|>argument key="([^"<]{1,200})"(?: type="(\w+)")?<\|sep\|>/,
    argumentClose: '<|close|>argument<|sep|>',
    wrappers: ['tools', 'response', 'message'].flatMap((part) => [`<|open|>${part}<|sep|>`, `<|close|>${part}<|sep|>`]),
    frame: /<\|(?:open|close)\|>[a-z]{0,20}$/,
    reasoning: { open: '<|open|>think<|sep|>', close: '<|close|>think<|sep|>' },
  }),
  museParser,
  makeXmlParser('minicpm5', {
    call: /<function name="([^"<]{1,200})">/,
    callClose: '</function>',
    argument: /<param name="([^"<]{1,200})">/,
    argumentClose: '</param>',
    wrappers: [],
    openers: ['<function name='],
    hasCdata: true,
  }),
  makeXmlParser('step3', {
    call: /<steptml:invoke name="([^"<]{1,200})">/,
    callClose: '</steptml:invoke>',
    argument: /<steptml:parameter name="([^"<]{1,200})">/,
    argumentClose: '</steptml:parameter>',
    wrappers: ['calls_begin', 'calls_end', 'call_begin', 'call_end'].map((part) => `<｜tool_${part}｜>`),
    frame: /function<｜tool_sep｜>/,
  }),
  makeEitherParser('dots', {
    isJson: /<dots_function_call>\s{0,64}[{[]/,
    json: { open: '<dots_function_call>', close: '</dots_function_call>' },
    xml: () => ({
      call: /<invoke name\s{0,4}=\s{0,4}["']?([^\s"'<>]{1,200})["']?\s{0,4}>/,
      callClose: '</invoke>',
      argument: /<parameter name\s{0,4}=\s{0,4}["']?([^"'<>\n]{1,200})["']?\s{0,4}>/,
      argumentClose: '</parameter>',
      wrappers: ['<dots_function_call>', '</dots_function_call>'],
    }),
  }),
  makeEitherParser('k2-horizon', {
    isJson: /<ifm\|tool_call>\s{0,64}\{/,
    json: { open: '<ifm|tool_call>', close: '</ifm|tool_call>', wrappers: ['<ifm|tool_calls>', '</ifm|tool_calls>'], reasoning: ifmTags },
    xml: (text) => {
      const think = /<\/?(ifm\|think(?:_fast|_faster)?)>/.exec(text)?.[1] ?? 'ifm|think';
      return {
        call: /<ifm\|tool_call>\s{0,16}([^\s<>"'{]{1,200})(?=\s{0,64}<\/?ifm\|(?:arg_key|tool_call)>)/,
        callClose: '</ifm|tool_call>',
        argument:
          /<ifm\|arg_key>([^<]{1,200})<\/ifm\|arg_key>\s*(?:<ifm\|arg_type>\s*(\w{1,40})\b[^<]{0,200}<\/ifm\|arg_type>\s*)?<ifm\|arg_value>/,
        argumentClose: '</ifm|arg_value>',
        wrappers: ['<ifm|tool_calls>', '</ifm|tool_calls>'],
        reasoning: { open: `<${think}>`, close: `</${think}>` },
      };
    },
  }),
] as const;
