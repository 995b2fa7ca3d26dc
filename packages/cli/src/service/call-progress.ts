// How the calls on backends get on, as tables and lines show it: the age of the oldest call, and the time since the last token.

import type { BackendView } from '@millrace/protocol';
import { toDuration, toRate } from '../terminal/text.ts';

export const progressHeads = ['tokens/s', 'oldest', 'last token'] as const;

/** A cell for each of the heads; dashes while no call runs. */
export function toProgressCells({ call_progress }: BackendView): string[] {
  if (call_progress === null) return ['-', '-', '-'];
  const { tokens_per_s, oldest_call_ms, last_token_ms } = call_progress;
  return [
    last_token_ms === null ? '-' : toRate(tokens_per_s),
    toDuration(oldest_call_ms),
    last_token_ms === null ? 'none yet' : `${toDuration(last_token_ms)} ago`,
  ];
}

/** For a line of text, over all backends: tokens/s, the oldest call, the last token. Empty while no call runs. */
export function toProgressText(backends: readonly BackendView[]): string[] {
  const running = backends.flatMap(({ call_progress }) => call_progress ?? []);
  if (running.length === 0) return [];
  const tokens = running.flatMap(({ last_token_ms }) => last_token_ms ?? []);
  const perSecond = running.reduce((sum, { tokens_per_s }) => sum + tokens_per_s, 0);
  return [
    `${tokens.length === 0 ? '-' : toRate(perSecond)} tokens/s`,
    `oldest call ${toDuration(Math.max(...running.map(({ oldest_call_ms }) => oldest_call_ms)))}`,
    tokens.length === 0 ? 'no token yet' : `last token ${toDuration(Math.min(...tokens))} ago`,
  ];
}
