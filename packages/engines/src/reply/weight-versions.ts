// Which weights sampled each token, as vLLM and SGLang report it: spans of tokens with the version that the trainer gave the weights.
// A request that an update in place did not interrupt has more than one.

import { refuse } from './bad-reply.ts';

/** The tokens from `start` up to `end` were sampled by these weights. The version is absent if its name is not a policy version. */
export interface VersionSpan {
  readonly version?: number;
  readonly start: number;
  readonly end: number;
}

/** Undefined if the server reports none, or no policy version among them. Spans that do not cover exactly the tokens are refused. */
export function readVersionSpans(value: unknown, tokens: number): readonly VersionSpan[] | undefined {
  if (value === undefined || value === null) return undefined;
  const spans = Array.isArray(value) ? value.map(readSpan) : [undefined];
  let at = 0;
  for (const span of spans) {
    if (!span || span.start !== at || span.end < at || (span.end === at && tokens > 0)) throw refuseSpans(value, tokens);
    at = span.end;
  }
  if (at !== tokens) throw refuseSpans(value, tokens);
  const known = spans.filter((span) => span !== undefined);
  return known.some(({ version }) => version !== undefined) && tokens > 0 ? known : undefined;
}

/** The first and the last policy version of the spans. */
export function toPolicyVersions(spans: readonly VersionSpan[]): { readonly first: number; readonly last: number } | undefined {
  const versions = spans.flatMap(({ version }) => version ?? []);
  const [first, last] = [versions[0], versions.at(-1)];
  return first === undefined || last === undefined ? undefined : { first, last };
}

/** The trainer sets it. A non-negative integer is a policy version; anything else, such as `default`, is ignored. */
export function toVersion(value: unknown): number | undefined {
  const version = typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value;
  return typeof version === 'number' && Number.isSafeInteger(version) && version >= 0 ? version : undefined;
}

function readSpan(span: unknown): VersionSpan | undefined {
  if (typeof span !== 'object' || span === null || !('version' in span && 'start' in span && 'end' in span)) return undefined;
  const { start, end } = span;
  if (!Number.isSafeInteger(start) || !Number.isSafeInteger(end)) return undefined;
  const version = toVersion(span.version);
  return { start: Number(start), end: Number(end), ...(version === undefined ? {} : { version }) };
}

function refuseSpans(value: unknown, tokens: number) {
  return refuse(`weight versions that do not cover its ${tokens} tokens: ${JSON.stringify(value)?.slice(0, 200)}`);
}
