// Pre-tokenisation for byte-level vocabularies: splits a text into pieces lazily, so that a long text is not split all at once.

import { z } from 'zod';

const split = z.looseObject({
  type: z.literal('Split'),
  pattern: z.object({ Regex: z.string() }),
  behavior: z.literal('Isolated'),
  invert: z.literal(false),
});
const byteLevel = z.looseObject({
  type: z.literal('ByteLevel'),
  add_prefix_space: z.literal(false),
  use_regex: z.literal(false),
  trim_offsets: z.boolean().optional(),
});
const preTokenizer = z.looseObject({ type: z.literal('Sequence'), pretokenizers: z.array(z.unknown()).min(2) });

/** The library's splitters, with the patterns that it compiled from the file. */
interface Splitter {
  readonly pattern: RegExp;
  pre_tokenize_text(text: string): string[];
}
const hasPattern = (splitter: unknown) => typeof splitter === 'function' && 'pattern' in splitter && splitter.pattern instanceof RegExp;
const splitters = z.array(z.custom<Splitter>(hasPattern)).min(1);

/**
 * Undefined unless the configuration is isolating splits followed by bytes, as in Qwen, Llama 3, Mistral's Tekken and DeepSeek.
 * `library` is what the library made from the same `config`.
 */
export function openPreTokens(config: unknown, library: unknown): ((text: string) => Iterable<string>) | undefined {
  const steps = preTokenizer.safeParse(config).data?.pretokenizers ?? [];
  const areSplits = z.array(split).min(1).safeParse(steps.slice(0, -1)).success;
  if (!areSplits || !byteLevel.safeParse(steps.at(-1)).success) return undefined;
  const made = typeof library === 'function' && 'tokenizers' in library && Array.isArray(library.tokenizers) ? library.tokenizers : [];
  const [first, ...others] = splitters.safeParse(made.slice(0, -1)).data ?? [];
  if (!first) return undefined;
  return others.reduce<(text: string) => Iterable<string>>(
    (split, other) =>
      function* (text) {
        for (const piece of split(text)) yield* other.pre_tokenize_text(piece);
      },
    (text) => splitAt(text, first.pattern),
  );
}

function* splitAt(text: string, pattern: RegExp): Generator<string> {
  let done = 0;
  for (const match of text.matchAll(pattern)) {
    if (done < match.index) yield text.slice(done, match.index);
    if (match[0] !== '') yield match[0];
    done = match.index + match[0].length;
  }
  if (done < text.length) yield text.slice(done);
}
