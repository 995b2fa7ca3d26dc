// What a Jinja filter is.

import type { KeywordArguments, Value } from './values/values.ts';

export interface FilterInput {
  readonly value: Value;
  readonly args: readonly Value[];
  readonly keywords: KeywordArguments;
}

/** Runs a filter by its name; for filters that take others, such as `map`. */
export type RunFilter = (name: string, input: FilterInput) => Value;

export type Filter = (input: FilterInput, run: RunFilter) => Value;
