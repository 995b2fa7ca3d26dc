// Splits a text at the matches of a pattern, lazily, in the ways that tokenizer files can ask for.

import { z } from 'zod';
import type { ClassPattern } from './class-pattern.ts';

export const splitBehavior = z.enum(['Removed', 'Isolated', 'MergedWithPrevious', 'MergedWithNext', 'Contiguous']);
export type SplitBehavior = z.infer<typeof splitBehavior>;

/** Pieces of a text, and undefined when a step is over. */
export type Pieces = Iterable<string | undefined>;

/** In code units. */
interface TextSpan {
  readonly begin: number;
  readonly end: number;
  readonly isMatch: boolean;
}

interface SplitOptions {
  readonly behavior: SplitBehavior;
  readonly isInverted?: boolean;
}

export function* splitText(text: string, pattern: ClassPattern, { behavior, isInverted = false }: SplitOptions): Pieces {
  for (const span of chooseSpans(findSpans(text, pattern, isInverted), behavior))
    yield span === undefined ? undefined : text.slice(span.begin, span.end);
}

type Spans = Iterable<TextSpan | undefined>;

function chooseSpans(spans: Spans, behavior: SplitBehavior): Spans {
  switch (behavior) {
    case 'Isolated':
      return spans;
    case 'Removed':
      return dropMatches(spans);
    case 'MergedWithPrevious':
      return joinSpans(spans, (before, span) => span.isMatch && !before.isMatch);
    case 'MergedWithNext':
      return joinSpans(spans, (before, span) => before.isMatch && !span.isMatch);
    case 'Contiguous':
      return joinSpans(spans, (before, span) => before.isMatch === span.isMatch);
  }
}

function* dropMatches(spans: Spans): Spans {
  for (const span of spans) if (!span?.isMatch) yield span;
}

/** Joins a span to the one before it where `isJoined` says so. */
function* joinSpans(spans: Spans, isJoined: (before: TextSpan, span: TextSpan) => boolean): Spans {
  let before: TextSpan | undefined;
  let begin = 0;
  for (const span of spans) {
    if (span === undefined) {
      yield undefined;
      continue;
    }
    if (before && !isJoined(before, span)) {
      yield { ...before, begin };
      begin = span.begin;
    }
    before = span;
  }
  if (before) yield { ...before, begin };
}

/** All of the text, without empty spans. */
function* findSpans(text: string, pattern: ClassPattern, isInverted: boolean): Spans {
  let done = 0;
  for (const match of pattern.find(text)) {
    if (match === undefined) {
      yield undefined;
      continue;
    }
    const { begin, end } = match;
    if (done < begin) yield { begin: done, end: begin, isMatch: isInverted };
    yield { begin, end, isMatch: !isInverted };
    done = end;
  }
  if (done < text.length) yield { begin: done, end: text.length, isMatch: isInverted };
}
