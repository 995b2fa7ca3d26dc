// About one megabyte each of what a tokenizer may be slow for: one character or a few that repeat, runs that a pattern reads to their end,
// and random mixtures. `measureLongest` finds the step that blocks longest.

import type { Tokenizer } from '../../src/tokenizer/tokenizer.ts';

const size = 1_000_000;
const spelled = 'spelled control tokens';

export function makeHostileTexts(): ReadonlyMap<string, string> {
  const fill = (text: string) => text.repeat(Math.ceil(size / Buffer.byteLength(text)));
  return new Map([
    ['one sign', fill('!')],
    ['two signs', fill('<|')],
    ['spaces', fill(' ')],
    ['spaces before a letter and a space', `${fill(' ')}x `],
    ['newlines', fill('\n')],
    ['newlines and spaces', fill('\n  ')],
    ['wide spaces', fill('\u3000')],
    ['digits', fill('0123456789')],
    ['one letter', fill('a')],
    ['letters and spaces', fill('a b')],
    ['random letters', makeRandom('abcdefghijklmnopqrstuvwxyz')],
    ['capitals with accents', fill('ÀÉÎ')],
    ['letters with marks', fill('α\u0301')],
    ['Thai', fill('สวัสดี')],
    ['ideographs', fill('日本語東京')],
    ['jamo', fill('\u1100\u1161\u11a8')],
    ['vowels of jamo', fill('\u1161')],
    ['vowels of Kirat Rai', fill('\u{16d67}')],
    ['marks', `a${fill('\u0301\u0316')}`],
    ['emoji', fill('🙂👍🏽')],
    ['lone surrogates', fill('\ud83d')],
    ['tags', fill('<b>')],
    [spelled, fill('<|im_end|></s>')],
    ['a mixture', makeRandom('aZ0.,<>|/"\'\\ \n\t_-é\u0301日🙂ß١ \u00a0')],
  ]);
}

/** Characters drawn from a fixed seed. */
function makeRandom(characters: string): string {
  const drawn = [...characters];
  let state = 5;
  let text = '';
  for (let bytes = 0; bytes < size; ) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    const one = drawn[Math.floor((state / 2 ** 32) * drawn.length)] ?? '';
    text += one;
    bytes += Buffer.byteLength(one);
  }
  return text;
}

export interface LongestStep {
  readonly ms: number;
  readonly text: string;
}

/**
 * By processor time of the thread. Garbage may be collected in any step, so a text whose longest step takes more than `limitMs` is measured
 * up to five times, and the best run counts.
 */
export function measureLongest(tokenizer: Tokenizer, texts: ReadonlyMap<string, string>, limitMs: number): LongestStep {
  let longest: LongestStep = { ms: 0, text: '' };
  for (const [name, text] of texts)
    for (const trusted of name === spelled ? [true, false] : [true]) {
      let ms = Number.POSITIVE_INFINITY;
      for (let run = 0; run < 5 && ms > limitMs; run++) ms = Math.min(ms, measureOnce(tokenizer, text, trusted));
      if (ms > longest.ms) longest = { ms, text: name };
    }
  return longest;
}

/** Trusted text takes the same steps as untrusted text, and is searched for control tokens first. */
function measureOnce(tokenizer: Tokenizer, text: string, trusted: boolean): number {
  const steps = tokenizer.encodeSteps([{ text, trusted }]);
  let longest = 0;
  for (let isDone = false; !isDone; ) {
    const before = process.threadCpuUsage();
    isDone = steps.next().done === true;
    const { user, system } = process.threadCpuUsage(before);
    longest = Math.max(longest, (user + system) / 1000);
  }
  return longest;
}
