// Values of arguments in formats where every value is text: the tool's schema says which of them are numbers, booleans or JSON.

import type { ToolCall, ToolSpec } from '@millrace/protocol';
import { LiteralError, LiteralReader, pythonSyntax } from './literal-reader.ts';
import { isRecord, parseJson, setOwn } from './tool-calls.ts';

/** The types that the schema allows for an argument, through `type`, `anyOf`, `oneOf` and `enum`; undefined if it says nothing. */
export function typesOf(tools: readonly ToolSpec[], name: string, parameter: string): ReadonlySet<string> | undefined {
  const properties = tools.find((tool) => tool.name === name)?.parameters.properties;
  const schema = isRecord(properties) && Object.hasOwn(properties, parameter) ? properties[parameter] : undefined;
  const types = new Set(collectTypes(schema, 0));
  return types.size === 0 ? undefined : types;
}

/** Models, and some templates, quote numbers: where the schema allows no text, it says what was meant. A value that fits no type stays as it is. */
export function fixTypes(call: ToolCall, tools: readonly ToolSpec[]): ToolCall {
  const args: Record<string, unknown> = {};
  let isFixed = false;
  for (const [key, value] of Object.entries(call.arguments)) {
    const types = typeof value === 'string' ? typesOf(tools, call.name, key) : undefined;
    const fixed = typeof value === 'string' && types && !types.has('string') ? toTyped(value, types) : value;
    isFixed ||= fixed !== value;
    setOwn(args, key, fixed);
  }
  return isFixed ? { ...call, arguments: args } : call;
}

const maxDepth = 8;

function collectTypes(schema: unknown, depth: number): string[] {
  if (!isRecord(schema) || depth > maxDepth) return [];
  const own = [schema.type ?? []].flat().filter((type) => typeof type === 'string');
  const inner = [schema.anyOf, schema.oneOf, schema.allOf].flatMap((list) => (Array.isArray(list) ? list : []));
  const listed = Array.isArray(schema.enum) && own.length === 0 ? schema.enum.map(typeOfJson) : [];
  return [...own, ...listed, ...inner.flatMap((one) => collectTypes(one, depth + 1))];
}

function typeOfJson(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number';
  return typeof value;
}

const pythonWords: Readonly<Record<string, string>> = { true: 'true', false: 'false', none: 'null', null: 'null' };

/** A value that fits none of its types stays text, and the tool reports it. */
export function toTyped(text: string, types: ReadonlySet<string> | undefined): unknown {
  if (types === undefined || (types.size === 1 && types.has('string'))) return text;
  const trimmed = text.trim();
  const json = parseJson(pythonWords[trimmed.toLowerCase()] ?? trimmed);
  const value = json.ok || !/^[[{(]/.test(trimmed) ? json : parsePython(trimmed);
  if (!value.ok) return text;
  return isOfType(value.json, types) || !types.has('string') ? value.json : text;
}

/** Some templates, and models that learned from them, write lists the Python way. */
function parsePython(text: string): ReturnType<typeof parseJson> {
  try {
    const reader = new LiteralReader(text, 0, pythonSyntax);
    const json = reader.value();
    return reader.at === text.length ? { ok: true, json } : { ok: false };
  } catch (error) {
    if (error instanceof LiteralError) return { ok: false };
    throw error;
  }
}

function isOfType(value: unknown, types: ReadonlySet<string>): boolean {
  const type = typeOfJson(value);
  return types.has(type) || (type === 'integer' && types.has('number'));
}
