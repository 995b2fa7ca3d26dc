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

/** The work of one step: about a millisecond. */
const matchesPerStep = 4096;

export function splitText(text: string, pattern: ClassPattern, { behavior, isInverted = false }: SplitOptions): Pieces {
  if (behavior === 'Isolated') return isolateMatches(text, pattern);
  return cutSpans(text, chooseSpans(findSpans(text, pattern, isInverted), behavior));
}

/** Matches and what is between them are pieces. Nearly all vocabularies do this, so it is kept short: twice as fast as with spans. */
function* isolateMatches(text: string, pattern: ClassPattern): Pieces {
  const matches = yield* pattern.find(text);
  let done = 0;
  while (matches.next()) {
    const { begin, end } = matches;
    if (done < begin) yield text.slice(done, begin);
    if (begin < end) yield text.slice(begin, end);
    done = end;
  }
  if (done < text.length) yield text.slice(done);
}

type Spans = Iterable<TextSpan | undefined>;

function chooseSpans(spans: Spans, behavior: Exclude<SplitBehavior, 'Isolated'>): Spans {
  switch (behavior) {
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

function* cutSpans(text: string, spans: Spans): Pieces {
  for (const span of spans) {
    if (span === undefined) yield undefined;
    else if (span.begin < span.end) yield text.slice(span.begin, span.end);
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

/** All of the text. A match may be empty: it separates what is before it from what is after it. */
function* findSpans(text: string, pattern: ClassPattern, isInverted: boolean): Spans {
  const matches = yield* pattern.find(text);
  let done = 0;
  for (let count = 1; matches.next(); count++) {
    const { begin, end } = matches;
    if (count % matchesPerStep === 0) yield undefined; // the caller may join or drop all of them
    if (done < begin) yield { begin: done, end: begin, isMatch: isInverted };
    yield { begin, end, isMatch: !isInverted };
    done = end;
  }
  if (done < text.length) yield { begin: done, end: text.length, isMatch: isInverted };
}
