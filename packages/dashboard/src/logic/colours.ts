// Which colour a token has, by what the reader asks for. A colour is the name of a class, so that both themes have their own shade.

import type { SegmentView } from './tokens.ts';

export const colourings = ['mask', 'logprob', 'version', 'source'] as const;
export type Colouring = (typeof colourings)[number];

/** From certain to hardly possible; each limit is the lowest logprob of its class. */
const logprobLimits = [-0.01, -0.1, -0.35, -0.7, -1.4, -2.3, -3.5, -5] as const;

export function colourOf(by: Colouring, segment: SegmentView, logprob: number): string {
  switch (by) {
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
