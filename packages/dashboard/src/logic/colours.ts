// Which colour a token has, by what the reader asks for. A colour is the name of a class, so that both themes have their own shade.

import type { SegmentView } from './tokens.ts';

export const colourings = ['mask', 'logprob', 'version', 'source'] as const;
/** Of tokens that a trainer posted back. */
export const trainerColourings = ['mismatch', 'advantage'] as const;
export type Colouring = (typeof colourings)[number] | (typeof trainerColourings)[number];

/** What is known of one token; NaN where nothing is. */
interface TokenNumbers {
  readonly logprob: number;
  readonly recomputed?: number;
  readonly advantage?: number;
}

/** From certain to hardly possible; each limit is the lowest logprob of its class. */
const logprobLimits = [-0.01, -0.1, -0.35, -0.7, -1.4, -2.3, -3.5, -5] as const;

/** From equal to far apart, in nats. */
const mismatchLimits = [0.003, 0.01, 0.03, 0.1, 0.2, 0.4, 0.8, 1.6] as const;

export function colourOf(
  by: Colouring,
  segment: SegmentView,
  { logprob, recomputed = Number.NaN, advantage = Number.NaN }: TokenNumbers,
): string {
  switch (by) {
    case 'mismatch':
      return Number.isNaN(recomputed - logprob) ? 'tk-none' : `tk-lp${mismatchClass(Math.abs(recomputed - logprob))}`;
    case 'advantage':
      return Number.isNaN(advantage) ? 'tk-none' : advantage > 0 ? 'tk-lp0' : advantage < 0 ? 'tk-lp8' : 'tk-context';
    case 'mask':
      return segment.mask === 1 ? 'tk-trained' : 'tk-context';
    case 'logprob':
      return Number.isNaN(logprob) ? 'tk-none' : `tk-lp${logprobClass(logprob)}`;
    case 'version':
      return segment.policy_versions === undefined ? 'tk-none' : `tk-c${segment.policy_versions.last % 8}`;
    case 'source':
      return `tk-${segment.kind}`;
  }
}

function mismatchClass(difference: number): number {
  const found = mismatchLimits.findIndex((limit) => difference <= limit);
  return found < 0 ? mismatchLimits.length : found;
}

/** 0 is the surest of nine classes. */
export function logprobClass(logprob: number): number {
  const found = logprobLimits.findIndex((limit) => logprob >= limit);
  return found < 0 ? logprobLimits.length : found;
}

interface LegendEntry {
  readonly colour: string;
  readonly label: string;
}

export function toLegend(by: Colouring, segments: readonly SegmentView[]): LegendEntry[] {
  switch (by) {
    case 'mask':
      return [
        { colour: 'tk-trained', label: 'trained on (mask 1)' },
        { colour: 'tk-context', label: 'context (mask 0)' },
      ];
    case 'logprob':
      return [
        ...logprobLimits.map((limit, index) => ({ colour: `tk-lp${index}`, label: `≥ ${toPercent(limit)}` })),
        { colour: `tk-lp${logprobLimits.length}`, label: 'rarer' },
        { colour: 'tk-none', label: 'not sampled' },
      ];
    case 'mismatch':
      return [
        ...mismatchLimits.map((limit, index) => ({ colour: `tk-lp${index}`, label: `≤ ${limit}` })),
        { colour: `tk-lp${mismatchLimits.length}`, label: 'further' },
        { colour: 'tk-none', label: 'not posted' },
      ];
    case 'advantage':
      return [
        { colour: 'tk-lp0', label: 'positive' },
        { colour: 'tk-context', label: 'zero' },
        { colour: 'tk-lp8', label: 'negative' },
        { colour: 'tk-none', label: 'not posted' },
      ];
    case 'version': {
      const versions = [...new Set(segments.flatMap(({ policy_versions: span }) => span?.last ?? []))].sort((one, other) => one - other);
      return [
        ...versions.map((version) => ({ colour: `tk-c${version % 8}`, label: `version ${version}` })),
        { colour: 'tk-none', label: 'not sampled' },
      ];
    }
    case 'source':
      return ['prompt', 'sampled', 'observation', 'inserted'].map((kind) => ({ colour: `tk-${kind}`, label: kind }));
  }
}

export function toPercent(logprob: number): string {
  const percent = 100 * Math.exp(logprob);
  return `${percent >= 10 ? percent.toFixed(0) : percent >= 1 ? percent.toFixed(1) : percent.toPrecision(2)} %`;
}
