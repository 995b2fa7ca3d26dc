// The tool-call parsers by name.

import { fencedParser } from './fenced.ts';
import { harmonyParser } from './harmony.ts';
import { hermesLikeParsers, hermesParser } from './hermes.ts';
import { jsonParsers } from './json-formats.ts';
import { literalParsers } from './literal-formats.ts';
import { llama3JsonParser } from './llama3-json.ts';
import { mistralParser } from './mistral.ts';
import { type ToolCallParser, type ToolFormat, toolFormats } from './tool-calls.ts';
import { xmlParsers } from './xml-formats.ts';

/** In the order in which they are tried against a template; the ones that accept text without marks come last. */
export const toolParsers: readonly ToolCallParser[] = [
  hermesParser,
  ...xmlParsers,
  mistralParser,
  ...jsonParsers,
  harmonyParser,
  ...hermesLikeParsers,
  ...literalParsers,
  llama3JsonParser,
  fencedParser,
];

export const toolParserNames = ['auto', ...toolFormats] as const;
export type ToolParserName = (typeof toolParserNames)[number];

export function findToolParser(name: ToolFormat): ToolCallParser {
  const parser = toolParsers.find((candidate) => candidate.name === name);
  if (!parser) throw new Error(`no tool-call parser is named ${name}; the parsers are ${toolParserNames.join(', ')}`);
  return parser;
}
