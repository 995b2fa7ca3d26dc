// A family of models as both sides know it: the names of vLLM's parsers, our format, and how the family writes calls.

import type { ToolFormat } from '../../../packages/model/src/tool-calls/tool-calls.ts';

export interface WrittenCall {
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
}

export interface ParserFamily {
  readonly ours: ToolFormat;
  /** vLLM's --tool-call-parser. */
  readonly tool: string;
  /** vLLM's --reasoning-parser; absent if it has none for the family. */
  readonly reasoning?: string;
  /** The control tokens that vLLM's parsers look for in the vocabulary. */
  readonly tokens: readonly string[];
  /** What vLLM reads from the tokenizer's configuration. */
  readonly tokenizerConfig?: Readonly<Record<string, unknown>>;
  /** What the chat template was called with. */
  readonly kwargs?: Readonly<Record<string, unknown>>;
  /** The text of a turn that consists of these calls. */
  readonly write: (calls: readonly WrittenCall[]) => string;
  /** The reasoning of a turn, written before its text. */
  readonly think?: readonly [open: string, close: string];
  /** What the generation prompt ends with, if it opens the reasoning of every turn. */
  readonly prompt?: string;
  /** Whether a turn has at most one call. */
  readonly isSingle?: boolean;
  /** What must stand before the text of a turn, if it is not empty. */
  readonly say?: (text: string) => string;
}

export const thinkTags: readonly [string, string] = ['<think>', '</think>'];

/** JSON as Python writes it, with a space after colons and commas. */
export function toJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(toJson).join(', ')}]`;
  if (typeof value === 'object' && value !== null) {
    const entries = Object.entries(value).map(([key, inner]) => `${JSON.stringify(key)}: ${toJson(inner)}`);
    return `{${entries.join(', ')}}`;
  }
  return JSON.stringify(value);
}

/** A value where values are text: strings as they are, the rest as JSON. */
export function toText(value: unknown): string {
  return typeof value === 'string' ? value : toJson(value);
}

export function toJsonCall({ name, arguments: args }: WrittenCall, key = 'arguments'): string {
  return `{"name": ${JSON.stringify(name)}, "${key}": ${toJson(args)}}`;
}

/** Writes a call with one piece of text for each argument. */
export function writeArguments({ arguments: args }: WrittenCall, write: (key: string, value: unknown) => string, joint = ''): string {
  return Object.entries(args)
    .map(([key, value]) => write(key, value))
    .join(joint);
}
