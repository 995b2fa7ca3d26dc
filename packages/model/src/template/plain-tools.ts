// Descriptions of tools as text and nothing else: a template writes them into the trusted part of the prompt, and those of an MCP server are
// written by others.

import type { ToolSpec } from '@millrace/protocol';

/** The tools, in whose texts a control token is broken by a space after its first character. */
export function withoutControlTokens(tools: readonly ToolSpec[], controlTokens: readonly string[]): readonly ToolSpec[] {
  const tokens = controlTokens.filter((token) => token.length > 1);
  return tools.map((tool) => ({
    ...tool,
    description: breakTokens(tool.description, tokens),
    parameters: cleanValue(tool.parameters, tokens) as ToolSpec['parameters'],
  }));
}

function cleanValue(value: unknown, tokens: readonly string[]): unknown {
  if (typeof value === 'string') return breakTokens(value, tokens);
  if (Array.isArray(value)) return value.map((one) => cleanValue(one, tokens));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [breakTokens(key, tokens), cleanValue(one, tokens)]));
}

const maxRounds = 10;

/** A broken token may leave another one behind; a text that still spells one after some rounds is left out. */
function breakTokens(text: string, tokens: readonly string[]): string {
  let clean = text;
  for (let round = 0; round < maxRounds; round++) {
    const token = tokens.find((one) => clean.includes(one));
    if (token === undefined) return clean;
    clean = clean.replaceAll(token, `${token.slice(0, 1)} ${token.slice(1)}`);
  }
  return tokens.some((one) => clean.includes(one)) ? '' : clean;
}
