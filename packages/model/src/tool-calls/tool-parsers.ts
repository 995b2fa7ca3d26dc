// The tool-call parsers by name.

import { fencedParser } from './fenced.ts';
import { harmonyParser, inklingParser } from './harmony.ts';
import { hermesLikeParsers, hermesParser } from './hermes.ts';
import { jsonParsers } from './json-formats.ts';
import { literalParsers } from './literal-formats.ts';
import { llama3JsonParser } from './llama3-json.ts';
import { mistralParser } from './mistral.ts';
import { capCalls, type ToolCallParser, type ToolFormat, toolFormats } from './tool-calls.ts';
import { fixTypes } from './typed-values.ts';
import { xmlParsers } from './xml-formats.ts';

/** In the order in which they are tried against a template; the ones that accept text without marks come last. */
const parsers: readonly ToolCallParser[] = [
  hermesParser,
  ...xmlParsers,
  mistralParser,
  ...jsonParsers,
  harmonyParser,
  inklingParser,
  ...hermesLikeParsers,
  ...literalParsers,
  llama3JsonParser,
  fencedParser,
];

export const toolParsers = parsers.map(withTypes);

/** In every format, arguments get the types of the tool's schema, and the number of calls has the same bound. */
function withTypes(parser: ToolCallParser): ToolCallParser {
  return {
    ...parser,
    parse(text, tools = []) {
      const turn = capCalls(parser.parse(text, tools));
      return { ...turn, calls: turn.calls.map((call) => fixTypes(call, tools)) };
    },
  };
}

export const toolParserNames = ['auto', ...toolFormats] as const;
export type ToolParserName = (typeof toolParserNames)[number];

export function findToolParser(name: ToolFormat): ToolCallParser {
  const parser = toolParsers.find((candidate) => candidate.name === name);
  if (!parser) throw new Error(`no tool-call parser is named ${name}; the parsers are ${toolParserNames.join(', ')}`);
  return parser;
}
