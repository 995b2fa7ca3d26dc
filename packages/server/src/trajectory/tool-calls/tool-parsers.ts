// The tool-call parsers by name, and the choice by chat template for `auto`.

import { fencedParser } from './fenced.ts';
import { hermesParser } from './hermes.ts';
import { llama3JsonParser } from './llama3-json.ts';
import { mistralParser } from './mistral.ts';
import { qwen3CoderParser } from './qwen3-coder.ts';
import type { ToolCallParser, ToolFormat } from './tool-calls.ts';

const parsers = [hermesParser, qwen3CoderParser, llama3JsonParser, mistralParser, fencedParser] as const;

export const toolParserNames = ['auto', 'hermes', 'qwen3-coder', 'llama3-json', 'mistral', 'fenced'] as const;
export type ToolParserName = (typeof toolParserNames)[number];

export function chooseToolParser(name: ToolParserName, templateSource: string): ToolCallParser {
  const wanted = name === 'auto' ? guessToolParser(templateSource) : name;
  const parser = parsers.find((candidate) => candidate.name === wanted);
  if (!parser) throw new Error(`no tool-call parser is named ${wanted}; the parsers are ${toolParserNames.join(', ')}`);
  return parser;
}

/** A template shows the model how to write a call, so it contains the format. Without one, fenced blocks are left. */
export function guessToolParser(templateSource: string): ToolFormat {
  if (templateSource.includes('<function=')) return 'qwen3-coder';
  if (templateSource.includes('[TOOL_CALLS]')) return 'mistral';
  if (templateSource.includes('<tool_call>')) return 'hermes';
  if (/"parameters":|<\|python_tag\|>/.test(templateSource) && templateSource.includes('<|start_header_id|>')) return 'llama3-json';
  return 'fenced';
}
