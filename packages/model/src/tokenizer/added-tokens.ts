// The added tokens of a vocabulary. Control tokens (turn marks, tool tags) are recognised only in trusted text. Ordinary ones, such as runs
// of spaces and tags of HTML, control nothing and are recognised in any text.

import { definedOf } from '@millrace/protocol';
import { z } from 'zod';

export const addedToken = z.looseObject({
  id: z.int(),
  content: z.string().min(1),
  lstrip: z.boolean().default(false),
  rstrip: z.boolean().default(false),
  single_word: z.boolean().default(false),
  normalized: z.boolean().default(false),
  special: z.boolean().default(true),
});
export type AddedToken = z.infer<typeof addedToken>;
export type ControlToken = Pick<AddedToken, 'id' | 'lstrip' | 'rstrip'>;

/** A piece of text. Control tokens are recognised only if it is trusted. */
export interface TextPart {
  readonly text: string;
  readonly trusted: boolean;
}

const htmlNames =
  'a|abbr|b|blockquote|br|caption|code|col|colgroup|dd|del|div|dl|dt|em|figcaption|figure|h[1-6]|hr|i|img|ins|kbd|li|mark|ol|p|pre|q|s|samp|small|span|strong|sub|sup|table|tbody|td|tfoot|th|thead|tr|u|ul|var';
const htmlTag = new RegExp(`^</?(?:${htmlNames})>$`);

/** Tokens that the file calls special are control tokens, and of the others those that are spelled like a mark of a template. */
export function isControl({ content, special }: Pick<AddedToken, 'content' | 'special'>): boolean {
  if (content.trim() === '') return false;
  return special || (/[<>[\]{}|｜]/.test(content) && !htmlTag.test(content));
}

/** The plain texts between control tokens, each with the id of the control token that ends it. */
export function* splitParts(
  parts: readonly TextPart[],
  { control, pattern }: { control: ReadonlyMap<string, ControlToken>; pattern: RegExp },
): Generator<PlainStretch> {
  let pending = '';
  let trimNext = false;
  for (const { text, trusted } of parts) {
    let done = 0;
    for (const [content, at] of trusted ? findAll(text, pattern) : []) {
      const stretch = pending + text.slice(done, at);
      const token = control.get(content);
      const trimmed = trimNext ? trimStart(stretch) : stretch;
      yield { text: token?.lstrip ? trimEnd(trimmed) : trimmed, ...definedOf({ id: token?.id }) };
      pending = '';
      trimNext = token?.rstrip === true;
      done = at + content.length;
    }
    pending += text.slice(done);
  }
  yield { text: trimNext ? trimStart(pending) : pending };
}

/** One after another, so that the caller can stop for others in between. */
function* findAll(text: string, pattern: RegExp): Generator<readonly [content: string, at: number]> {
  for (let from = 0; ; ) {
    pattern.lastIndex = from; // other texts may have been searched in between
    const match = pattern.exec(text);
    if (!match) return;
    from = pattern.lastIndex;
    yield [match[0], match.index];
  }
}

/** White space as Unicode defines it, which is not what `trim` removes. All of it is one code unit each. */
const [space, spaceAtStart] = [/\p{White_Space}/u, /^\p{White_Space}+/u];
const trimStart = (text: string) => text.replace(spaceAtStart, '');

/** Not a pattern: one that ends in `$` tries again at each space of a long run in the middle. */
function trimEnd(text: string): string {
  let end = text.length;
  while (end > 0 && space.test(text.charAt(end - 1))) end -= 1;
  return text.slice(0, end);
}

/** Finds control tokens; the longest one wins if several start at the same position. */
export function toPattern(contents: readonly string[]): RegExp {
  if (contents.length === 0) return /(?!)/g;
  const longestFirst = [...contents].sort((a, b) => b.length - a.length);
  return new RegExp(longestFirst.map((content) => RegExp.escape(content)).join('|'), 'g');
}

/** A plain text before an added token; the last one has no token. */
interface PlainStretch {
  readonly text: string;
  readonly id?: number;
}

const wordCharacter = /[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}]/u;
const placesPerStep = 4096;

/** Finds ordinary added tokens in a text, in steps. */
export class OrdinaryTokens {
  /** By their first two code units, the longest first. */
  readonly #byHead = new Map<string, AddedToken[]>();
  readonly #firsts: RegExp;

  constructor(tokens: readonly AddedToken[]) {
    for (const token of tokens.toSorted((a, b) => b.content.length - a.content.length)) {
      const head = token.content.slice(0, 2);
      this.#byHead.set(head, [...(this.#byHead.get(head) ?? []), token]);
    }
    const firsts = new Set(tokens.map(({ content }) => content.slice(0, 1)));
    this.#firsts = firsts.size === 0 ? /(?!)/g : new RegExp(`[${Array.from(firsts, (first) => RegExp.escape(first)).join('')}]`, 'g');
  }

  get isEmpty(): boolean {
    return this.#byHead.size === 0;
  }

  /** Yields undefined when a step is over. */
  *split(text: string): Generator<PlainStretch | undefined> {
    let done = 0;
    let places = 0;
    for (let at = this.#next(text, 0); at >= 0; ) {
      if (++places % placesPerStep === 0) yield undefined;
      const token = this.#find(text, at);
      const end = at + (token?.content.length ?? 1);
      if (token && isWord(token, text, at)) {
        const begin = token.lstrip ? done + trimEnd(text.slice(done, at)).length : at;
        yield { text: text.slice(done, begin), id: token.id };
        done = token.rstrip ? text.length - trimStart(text.slice(end)).length : end;
      }
      at = this.#next(text, Math.max(end, done));
    }
    yield { text: text.slice(done) };
  }

  #next(text: string, from: number): number {
    this.#firsts.lastIndex = from;
    return this.#firsts.exec(text)?.index ?? -1;
  }

  #find(text: string, at: number): AddedToken | undefined {
    const longer = this.#byHead.get(text.slice(at, at + 2))?.find(({ content }) => text.startsWith(content, at));
    return longer ?? this.#byHead.get(text.slice(at, at + 1))?.[0];
  }
}

function isWord({ single_word, content }: AddedToken, text: string, at: number): boolean {
  if (!single_word) return true;
  return !wordCharacter.test(text.slice(Math.max(at - 1, 0), at)) && !wordCharacter.test(text.slice(at + content.length).slice(0, 1));
}
