// Reads every case with both parsers.

import { join } from 'node:path';
import { z } from 'zod';
import { findToolParser } from '../../../packages/model/src/tool-calls/tool-parsers.ts';
import { askPython } from '../../engines/python-packages.ts';
import { modelFolder, vllmPython } from '../../engines/world-cache.ts';
import { families, makeParserCases, type ParserCase, tools } from './cases.ts';
import { openExtras } from './extras.ts';
import type { WrittenCall } from './family.ts';

interface TurnReading {
  readonly reasoning: string;
  readonly content: string;
  readonly calls: readonly WrittenCall[];
}

export interface ReadCase extends ParserCase {
  /** vLLM's name of the parser, and what tells two of the same name apart. */
  readonly name: string;
  readonly ours: TurnReading & { readonly malformed: readonly string[] };
  readonly theirs: TurnReading | { readonly error: string };
}

const theirReading = z.union([
  z.object({ error: z.string() }),
  z.object({
    reasoning: z.string(),
    content: z.string(),
    calls: z.array(z.object({ name: z.string(), arguments: z.string().transform(parseArguments) })),
  }),
]);

/** vLLM hands arguments over as text, which need not be JSON. */
function parseArguments(text: string): Record<string, unknown> {
  try {
    return JSON.parse(text);
  } catch {
    return { 'not JSON': text };
  }
}

export async function readAll(): Promise<ReadCase[]> {
  const cases = makeParserCases();
  const { sitePackages, vocabulary } = await openExtras();
  const reply = await askPython(vllmPython(), join(import.meta.dirname, 'vllm_parsers.py'), {
    tokenizer: join(modelFolder(), 'tokenizer.json'),
    packages: sitePackages,
    vocabulary,
    tools,
    families: families.map(({ tool, reasoning, tokens, tokenizerConfig, kwargs }) => ({
      tool,
      reasoning,
      tokens,
      config: tokenizerConfig,
      kwargs,
    })),
    cases: cases.map(({ family, text, thinks }) => ({ family, text, thinks })),
  });
  const theirs = z.array(theirReading).length(cases.length).parse(reply);
  return cases.flatMap((one, at) => {
    const reading = theirs[at];
    return reading ? [{ ...one, name: nameOf(one.family), ours: readOurs(one), theirs: reading }] : [];
  });
}

/** vLLM's name; families that share a parser have their reasoning parser or a number added. */
export function nameOf(at: number): string {
  const { tool = '', reasoning } = families[at] ?? {};
  const isShared = families.some((other, place) => other.tool === tool && place !== at && other.reasoning !== undefined);
  if (isShared && reasoning !== undefined && reasoning !== tool) return `${tool} (${reasoning})`;
  const count = families.slice(0, at).filter((other) => other.tool === tool && other.reasoning === undefined).length;
  return isShared && reasoning === undefined ? `${tool} ${count + 2}` : tool;
}

/** As the service reads it, with what the generation prompt opened. */
function readOurs({ family, text, thinks }: ParserCase): ReadCase['ours'] {
  const { ours = 'hermes', prompt = '' } = families[family] ?? {};
  const { content, reasoning = '', calls, malformed } = findToolParser(ours).parse(thinks ? prompt + text : text, tools);
  return { content, reasoning, calls: calls.map(({ name, arguments: args }) => ({ name, arguments: args })), malformed };
}
