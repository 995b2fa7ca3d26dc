// Arguments that say nothing, for a tool that broke on those of an agent: the first value that its schema allows, made of a short text.

type FieldSchema = Readonly<Record<string, unknown>>;

const mostNesting = 8;

/** They may still not be valid: formats, patterns and references are not looked at. */
export function neutralArguments(schema: unknown, text: string, nesting = 0): unknown {
  if (typeof schema !== 'object' || schema === null || nesting > mostNesting) return text;
  const { enum: choices, const: only, anyOf, oneOf, default: usual, ...rest } = schema as FieldSchema;
  if (Array.isArray(choices)) return choices[0];
  if (only !== undefined) return only;
  const [first] = [anyOf, oneOf].flatMap((some) => (Array.isArray(some) ? some : []));
  if (first !== undefined) return neutralArguments(first, text, nesting + 1);
  const [type] = [rest.type].flat();
  if (type === 'object') {
    const entries = Object.entries((rest.properties ?? {}) as FieldSchema);
    return Object.fromEntries(entries.map(([name, one]) => [name, neutralArguments(one, text, nesting + 1)]));
  }
  if (type === 'array') return Array.from({ length: count(rest.minItems) }, () => neutralArguments(rest.items, text, nesting + 1));
  if (type === 'number' || type === 'integer') return clamp(Number(text), rest);
  if (type === 'boolean') return usual ?? false;
  if (type === 'null') return null;
  return text.padEnd(count(rest.minLength), text);
}

const count = (given: unknown): number => Math.min(100, Number(given ?? 0));

function clamp(value: number, { minimum, maximum, exclusiveMinimum, exclusiveMaximum }: FieldSchema): number {
  const least = Number(minimum ?? (exclusiveMinimum === undefined ? -Infinity : Number(exclusiveMinimum) + 1));
  const most = Number(maximum ?? (exclusiveMaximum === undefined ? Infinity : Number(exclusiveMaximum) - 1));
  return Math.max(least, Math.min(most, value));
}
