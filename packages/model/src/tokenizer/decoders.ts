// Tokens back to text, as the `decoder` of a tokenizer.json says.

import { z } from 'zod';
import { fromLetters } from './model/byte-letters.ts';
import { toRegExp, translatePattern } from './split/oniguruma.ts';

/** Takes the spellings of tokens in the vocabulary. */
export type Decoder = (tokens: readonly string[]) => string;

/** One change of a list of tokens; the last list is joined. */
type DecoderChange = (tokens: readonly string[]) => readonly string[];

const pattern = z.union([z.object({ Regex: z.string() }), z.object({ String: z.string() })]);
const step = z.discriminatedUnion('type', [
  z.looseObject({ type: z.literal('Sequence'), decoders: z.array(z.unknown()) }),
  z.looseObject({ type: z.literal('ByteLevel') }),
  z.looseObject({ type: z.literal('ByteFallback') }),
  z.looseObject({ type: z.literal('Fuse') }),
  z.looseObject({ type: z.literal('Replace'), pattern, content: z.string() }),
  z.looseObject({ type: z.literal('Strip'), content: z.string(), start: z.int(), stop: z.int() }),
  z.looseObject({
    type: z.literal('Metaspace'),
    replacement: z.string().default('▁'),
    prepend_scheme: z.enum(['always', 'first', 'never']).optional(),
    add_prefix_space: z.boolean().default(true),
  }),
]);
type DecoderConfig = Exclude<z.infer<typeof step>, { type: 'Sequence' }>;

/** Throws an Error that names the decoder that is not supported. Without a decoder, tokens are joined by spaces. */
export function openDecoder(config: unknown): Decoder {
  if (config === null || config === undefined) return (tokens) => tokens.join(' ');
  const steps = readSteps(config).map(openStep);
  return (tokens) => steps.reduce((decoded, change) => change(decoded), tokens).join('');
}

function readSteps(config: unknown): DecoderConfig[] {
  const parsed = step.safeParse(config);
  if (!parsed.success) {
    const type = z.looseObject({ type: z.string() }).safeParse(config).data?.type ?? JSON.stringify(config);
    throw new Error(`its decoder ${type} is not supported`);
  }
  return parsed.data.type === 'Sequence' ? parsed.data.decoders.flatMap(readSteps) : [parsed.data];
}

function openStep(config: DecoderConfig): DecoderChange {
  switch (config.type) {
    case 'ByteLevel':
      return (tokens) => [Buffer.concat(tokens.map(fromLetters)).toString()];
    case 'ByteFallback':
      return joinBytes;
    case 'Fuse':
      return (tokens) => [tokens.join('')];
    case 'Replace':
      return openReplace(config);
    case 'Strip':
      return (tokens) => tokens.map((token) => strip(token, config));
    case 'Metaspace':
      return openMetaspace(config);
  }
}

function openReplace({ pattern: replaced, content }: Extract<DecoderConfig, { type: 'Replace' }>): DecoderChange {
  if ('String' in replaced) return (tokens) => tokens.map((token) => token.replaceAll(replaced.String, () => content));
  const expression = toRegExp(translatePattern(replaced.Regex));
  return (tokens) => tokens.map((token) => token.replace(expression, () => content));
}

/** Neighbouring bytes that are no valid UTF-8 become one replacement character each. */
function joinBytes(tokens: readonly string[]): string[] {
  const joined: string[] = [];
  let bytes: number[] = [];
  const flush = () => {
    const text = Buffer.from(bytes).toString();
    joined.push(text.includes('\ufffd') && !isUtf8(bytes) ? '\ufffd'.repeat(bytes.length) : text);
    bytes = [];
  };
  for (const token of tokens) {
    const hex = /^<0x([0-9A-Fa-f]{2})>$/.exec(token)?.[1];
    if (hex !== undefined) {
      bytes.push(Number.parseInt(hex, 16));
      continue;
    }
    if (bytes.length > 0) flush();
    joined.push(token);
  }
  if (bytes.length > 0) flush();
  return joined;
}

function isUtf8(bytes: readonly number[]): boolean {
  const buffer = Buffer.from(bytes);
  return Buffer.from(buffer.toString()).equals(buffer);
}

function strip(token: string, { content, start, stop }: Extract<DecoderConfig, { type: 'Strip' }>): string {
  const characters = [...token];
  let begin = 0;
  while (begin < start && characters[begin] === content) begin += 1;
  let end = characters.length;
  while (end > begin && characters.length - end < stop && characters[end - 1] === content) end -= 1;
  return characters.slice(begin, end).join('');
}

function openMetaspace({ replacement, prepend_scheme, add_prefix_space }: Extract<DecoderConfig, { type: 'Metaspace' }>): DecoderChange {
  const isPrepended = (prepend_scheme ?? (add_prefix_space ? 'always' : 'never')) !== 'never';
  return (tokens) =>
    tokens.map((token, index) => {
      const isDropped = index === 0 && isPrepended && token.startsWith(replacement);
      return (isDropped ? token.slice(replacement.length) : token).replaceAll(replacement, ' ');
    });
}
