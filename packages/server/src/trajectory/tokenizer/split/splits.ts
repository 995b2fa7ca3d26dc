// Splits a text at the matches of a pattern, lazily, in the ways that tokenizer files can ask for.

import { z } from 'zod';
import type { ClassPattern } from './class-pattern.ts';

export const splitBehavior = z.enum(['Removed', 'Isolated', 'MergedWithPrevious', 'MergedWithNext', 'Contiguous']);
export type SplitBehavior = z.infer<typeof splitBehavior>;

/** Pieces of a text, and undefined when a step is over. */
export type Pieces = Iterable<string | undefined>;

interface TextSpan {
  readonly text: string;
  readonly isMatch: boolean;
}

interface SplitOptions {
  readonly behavior: SplitBehavior;
  readonly isInverted?: boolean;
}

export function* splitText(text: string, pattern: ClassPattern, { behavior, isInverted = false }: SplitOptions): Pieces {
  const spans = findSpans(text, pattern, isInverted);
  switch (behavior) {
    case 'Isolated':
      for (const span of spans) yield span?.text;
      return;
    case 'Removed':
      for (const span of spans) if (!span?.isMatch) yield span?.text;
      return;
    case 'MergedWithPrevious':
      return yield* joinSpans(spans, (before, span) => span.isMatch && !before.isMatch);
    case 'MergedWithNext':
      return yield* joinSpans(spans, (before, span) => before.isMatch && !span.isMatch);
    case 'Contiguous':
      return yield* joinSpans(spans, (before, span) => before.isMatch === span.isMatch);
  }
}

/** Joins a span to the one before it where `isJoined` says so. */
function* joinSpans(spans: Iterable<TextSpan | undefined>, isJoined: (before: TextSpan, span: TextSpan) => boolean): Pieces {
  let before: TextSpan | undefined;
  let pending = '';
  for (const span of spans) {
    if (span === undefined) {
      yield undefined;
      continue;
    }
    if (before && isJoined(before, span)) {
      pending += span.text;
    } else {
      if (pending !== '') yield pending;
      pending = span.text;
    }
    before = span;
  }
  if (pending !== '') yield pending;
}

/** Without empty spans. */
function* findSpans(text: string, pattern: ClassPattern, isInverted: boolean): Iterable<TextSpan | undefined> {
  let done = 0;
  for (const match of pattern.find(text)) {
    if (match === undefined) {
      yield undefined;
      continue;
    }
    if (done < match.begin) yield { text: text.slice(done, match.begin), isMatch: isInverted };
    yield { text: text.slice(match.begin, match.end), isMatch: !isInverted };
    done = match.end;
  }
  if (done < text.length) yield { text: text.slice(done), isMatch: isInverted };
}
