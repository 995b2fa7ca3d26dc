// Pre-tokenisation: splits a text into pieces lazily, so that a long text is not split all at once.

import { z } from 'zod';
import { toLetters } from '../model/byte-letters.ts';
import type { SymbolUnit } from '../model/token-model.ts';
import { ClassPattern } from './class-pattern.ts';
import { replaceCharacter } from './normalizers.ts';
import { type Pieces, type SplitBehavior, splitBehavior, splitText } from './splits.ts';

export interface PreTokens {
  /** `isStart` says that nothing comes before the text, not even a control token. */
  split(text: string, isStart: boolean): Pieces;
  /** For `bytes`, the pieces are plain text, and the symbols of the model are its bytes. */
  readonly unit: SymbolUnit;
}

type Splitter = (text: string, isStart: boolean) => Pieces;

const patternField = z.union([z.object({ Regex: z.string() }), z.object({ String: z.string() })]);
const step = z.discriminatedUnion('type', [
  z.looseObject({ type: z.literal('Sequence'), pretokenizers: z.array(z.unknown()) }),
  z.looseObject({ type: z.literal('Split'), pattern: patternField, behavior: splitBehavior, invert: z.boolean().default(false) }),
  z.looseObject({ type: z.literal('ByteLevel'), add_prefix_space: z.boolean().default(true), use_regex: z.boolean().default(true) }),
  z.looseObject({ type: z.literal('Digits'), individual_digits: z.boolean().default(false) }),
  z.looseObject({ type: z.literal('Punctuation'), behavior: splitBehavior.default('Isolated') }),
  z.looseObject({ type: z.literal('WhitespaceSplit') }),
  z.looseObject({ type: z.literal('Whitespace') }),
  z.looseObject({
    type: z.literal('Metaspace'),
    replacement: z.string().default('▁'),
    prepend_scheme: z.enum(['always', 'first', 'never']).optional(),
    add_prefix_space: z.boolean().default(true),
    split: z.boolean().default(true),
  }),
]);
type PreTokenizerConfig = z.infer<typeof step>;
type PreTokenizerStep = Exclude<PreTokenizerConfig, { type: 'Sequence' }>;

const gpt2Pattern = String.raw`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`;

/** Throws an Error that names the pre-tokenizer or the construct that is not supported. */
export function openPreTokens(config: unknown): PreTokens {
  const steps = config === null || config === undefined ? [] : readSteps(config);
  const isBytes = steps.at(-1)?.type === 'ByteLevel';
  const splitters = steps.flatMap((one, index) => openSplitter(one, isBytes && index === steps.length - 1) ?? []);
  const [first = (text: string) => [text], ...others] = splitters;
  const split = others.reduce<Splitter>(
    (before, splitter) =>
      function* (text, isStart) {
        let isFirst = isStart;
        for (const piece of before(text, isStart)) {
          if (piece === undefined) {
            yield undefined;
            continue;
          }
          yield* splitter(piece, isFirst);
          isFirst = false;
        }
      },
    first,
  );
  return { split, unit: isBytes ? 'bytes' : 'characters' };
}

function readSteps(config: unknown): PreTokenizerStep[] {
  const parsed = step.safeParse(config);
  if (!parsed.success) {
    const type = z.looseObject({ type: z.string() }).safeParse(config).data?.type ?? JSON.stringify(config);
    throw new Error(`its pre-tokenizer ${type} is not supported`);
  }
  return parsed.data.type === 'Sequence' ? parsed.data.pretokenizers.flatMap(readSteps) : [parsed.data];
}

/** The last ByteLevel leaves the bytes to the model. Undefined if nothing is left to do. */
function openSplitter(config: PreTokenizerStep, isLast: boolean): Splitter | undefined {
  switch (config.type) {
    case 'Split':
      return splitAt(toSource(config.pattern), config.behavior, config.invert);
    case 'Digits':
      return splitAt(config.individual_digits ? '\\p{N}' : '\\p{N}+', 'Isolated');
    case 'Punctuation':
      return splitAt('[\\p{P}$+<=>^`|~]', config.behavior);
    case 'WhitespaceSplit':
      return splitAt('\\s', 'Removed');
    case 'Whitespace':
      return splitAt('\\w+|[^\\w\\s]+', 'Removed', true);
    case 'ByteLevel':
      return openByteLevel(config, isLast);
    case 'Metaspace':
      return openMetaspace(config);
  }
}

function splitAt(source: string, behavior: SplitBehavior, isInverted = false): Splitter {
  const pattern = new ClassPattern(source);
  return (text) => splitText(text, pattern, { behavior, isInverted });
}

function toSource(pattern: z.infer<typeof patternField>): string {
  return 'Regex' in pattern ? pattern.Regex : escapeText(pattern.String);
}

function escapeText(text: string): string {
  return Array.from(text, (character) => `\\x{${character.codePointAt(0)?.toString(16)}}`).join('');
}

function openByteLevel(
  { add_prefix_space, use_regex }: Extract<PreTokenizerConfig, { type: 'ByteLevel' }>,
  isLast: boolean,
): Splitter | undefined {
  if (isLast && !add_prefix_space && !use_regex) return undefined;
  const pattern = new ClassPattern(gpt2Pattern);
  return function* (text) {
    const spaced = add_prefix_space && !text.startsWith(' ') ? ` ${text}` : text;
    const pieces = use_regex ? splitText(spaced, pattern, { behavior: 'Isolated' }) : [spaced];
    if (isLast) yield* pieces;
    else for (const piece of pieces) yield piece === undefined ? piece : toLetters(Buffer.from(piece));
  };
}

function openMetaspace({
  replacement,
  prepend_scheme,
  add_prefix_space,
  split,
}: Extract<PreTokenizerConfig, { type: 'Metaspace' }>): Splitter {
  const scheme = prepend_scheme ?? (add_prefix_space ? 'always' : 'never');
  const pattern = new ClassPattern(escapeText(replacement));
  return function* (text, isStart) {
    const marked = yield* replaceCharacter(text, ' ', replacement);
    const isPrepended = (scheme === 'always' || (scheme === 'first' && isStart)) && !marked.startsWith(replacement);
    const whole = isPrepended ? replacement + marked : marked;
    if (split) yield* splitText(whole, pattern, { behavior: 'MergedWithNext' });
    else yield whole;
  };
}
