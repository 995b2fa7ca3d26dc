// Normalisation of a text before it is split: Unicode forms and replacements. A long text is normalised in slices.

import { z } from 'zod';
import type { Steps } from '../../../base/pace.ts';
import { sortMarks } from './mark-order.ts';
import { toRegExp, translatePattern } from './oniguruma.ts';

export interface Normalizer {
  /** In steps of about a millisecond. */
  steps(text: string): Steps<string>;
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
  readonly steps: (text: string) => Steps<string>;
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
  const replacement = content.replaceAll('$', '$$$$');
  const run = (text: string) => text.replaceAll(pattern.String, replacement);
  return pattern.String.length === 1 ? { run, steps: (text) => applySlices(text, (slice) => stepOnce(run, slice)) } : atOnce(run);
}

function atOnce(run: (text: string) => string): Change {
  return { run, steps: (text) => stepOnce(run, text) };
}

// biome-ignore lint/correctness/useYield: one step.
function* stepOnce(run: (text: string) => string, text: string): Steps<string> {
  return run(text);
}

function openForm(type: z.infer<typeof form>): Change {
  const normalize = function* (text: string): Steps<string> {
    const sorted = yield* sortMarks(text);
    if (sorted !== text) yield;
    return sorted.normalize(type);
  };
  return { run: (text) => text.normalize(type), steps: (text) => applySlices(text, normalize) };
}

const sliceLength = 16_384;
/** Characters that change nothing before them: ASCII, ideographs, kana and syllables. */
const safeStart = /[\x20-\x7e\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fff\uac00-\ud7a3]/g;

function* applySlices(text: string, apply: (slice: string) => Steps<string>): Steps<string> {
  if (text.length <= sliceLength) return yield* apply(text);
  let changed = '';
  for (let begin = 0; begin < text.length; ) {
    safeStart.lastIndex = begin + sliceLength;
    const end = safeStart.exec(text)?.index ?? text.length;
    changed += yield* apply(text.slice(begin, end));
    begin = end;
    yield;
  }
  return changed;
}
