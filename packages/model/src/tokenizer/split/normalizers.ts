// Normalisation of a text before it is split: Unicode forms and replacements. A long text is normalised in slices.

import { z } from 'zod';
import { type PlainSteps, sortMarks } from './mark-order.ts';
import { toRegExp, translatePattern } from './oniguruma.ts';

export interface Normalizer {
  /** In steps of about a millisecond. */
  steps(text: string): PlainSteps;
  /** At once, for a short text. */
  run(text: string): string;
}

const form = z.enum(['NFC', 'NFD', 'NFKC', 'NFKD']);
const step = z.discriminatedUnion('type', [
  z.looseObject({ type: z.literal('Sequence'), normalizers: z.array(z.unknown()) }),
  z.looseObject({ type: form }),
  z.looseObject({ type: z.literal('Prepend'), prepend: z.string() }),
  z.looseObject({
    type: z.literal('Replace'),
    pattern: z.union([z.object({ Regex: z.string() }), z.object({ String: z.string() })]),
    content: z.string(),
  }),
]);
type NormalizerStep = Exclude<z.infer<typeof step>, { type: 'Sequence' }>;

/** One change of a text. */
interface Change {
  readonly run: (text: string) => string;
  readonly steps: (text: string) => PlainSteps;
}

/** Throws an Error that names the normalizer that is not supported. */
export function openNormalizer(config: unknown): Normalizer {
  const changes = config === null || config === undefined ? [] : readSteps(config).map(openChange);
  return {
    run: (text) => changes.reduce((changed, change) => change.run(changed), text),
    *steps(text) {
      let changed = text;
      for (const change of changes) changed = yield* change.steps(changed);
      return changed;
    },
  };
}

function readSteps(config: unknown): NormalizerStep[] {
  const parsed = step.safeParse(config);
  if (!parsed.success) {
    const type = z.looseObject({ type: z.string() }).safeParse(config).data?.type ?? JSON.stringify(config);
    throw new Error(`its normalizer ${type} is not supported`);
  }
  return parsed.data.type === 'Sequence' ? parsed.data.normalizers.flatMap(readSteps) : [parsed.data];
}

function openChange(config: NormalizerStep): Change {
  if (config.type === 'Prepend') return atOnce((text) => (text === '' ? text : config.prepend + text));
  if (config.type !== 'Replace') return openForm(config.type);
  const { pattern, content } = config;
  if ('Regex' in pattern) {
    const expression = toRegExp(translatePattern(pattern.Regex));
    return atOnce((text) => text.replace(expression, () => content));
  }
  const run = (text: string) => replaceText(text, pattern.String, content);
  return pattern.String.length === 1 ? { run, steps: (text) => applySlices(text, (slice) => stepOnce(run, slice)) } : atOnce(run);
}

/** The result is flat. That of `replaceAll` is a rope with a knot for each place, which takes long to read afterwards. */
function replaceText(text: string, replaced: string, content: string): string {
  return text.includes(replaced) ? text.split(replaced).join(content) : text;
}

/** Replaces one character, in steps. */
export function replaceCharacter(text: string, replaced: string, content: string): PlainSteps {
  return applySlices(text, (slice) => stepOnce((one) => replaceText(one, replaced, content), slice));
}

function atOnce(run: (text: string) => string): Change {
  return { run, steps: (text) => stepOnce(run, text) };
}

// biome-ignore lint/correctness/useYield: one step.
function* stepOnce(run: (text: string) => string, text: string): PlainSteps {
  return run(text);
}

function openForm(type: z.infer<typeof form>): Change {
  const normalize = function* (text: string): PlainSteps {
    const sorted = yield* sortMarks(text);
    if (text.length > longLength) yield;
    return cutVowels(sorted)
      .map((part) => part.normalize(type))
      .join('');
  };
  return { run: (text) => text.normalize(type), steps: (text) => applySlices(text, normalize) };
}

/** V8 takes quadratic time for a long run of this vowel of Kirat Rai. A pair of them is one letter, so a run is cut after an even number. */
function cutVowels(text: string): string[] {
  if (!/[\u{16d67}\u{16d68}]{64}/u.test(text)) return [text];
  const decomposed = text.normalize('NFD');
  const cuts = Array.from(decomposed.matchAll(/\u{16d67}{256}/gu), (match) => match.index + match[0].length);
  return [0, ...cuts].map((begin, index) => decomposed.slice(begin, cuts[index]));
}

const sliceLength = 16_384;
/** A slice without a place to cut it takes several steps. */
const longLength = 2 * sliceLength;
/** A character that changes nothing before it: no mark, and none that a normal form joins with the one before. A test goes over all. */
export const safeStart: RegExp = /[^\p{M}\u1160-\u11ff\u3131-\u318e\ud7b0-\ud7ff\uff9e-\uffdc\u{16d67}\u{16d68}]/gu;

function* applySlices(text: string, apply: (slice: string) => PlainSteps): PlainSteps {
  if (text.length <= sliceLength) return yield* apply(text);
  let changed = '';
  for (let begin = 0; begin < text.length; ) {
    const end = yield* findStart(text, begin + sliceLength);
    if (end - begin > longLength) yield;
    changed += yield* apply(text.slice(begin, end));
    begin = end;
    yield;
  }
  return changed;
}

/** The first place from here on at which a slice may begin, or the end of the text. */
function* findStart(text: string, from: number): Generator<undefined, number, void> {
  for (let begin = toBorder(text, from); begin < text.length; ) {
    const end = toBorder(text, begin + sliceLength);
    safeStart.lastIndex = 0;
    const found = safeStart.exec(text.slice(begin, end));
    if (found) return begin + found.index;
    begin = end;
    yield;
  }
  return text.length;
}

/** The place itself, or the one before if it is in the middle of a surrogate pair. */
function toBorder(text: string, at: number): number {
  return at < text.length && (text.codePointAt(at - 1) ?? 0) > 0xffff ? at - 1 : at;
}
