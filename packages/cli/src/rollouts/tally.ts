// Counts the rollouts that have ended, for the progress line and the summary.

import type { RolloutView } from '@millrace/protocol';
import { ended, type SubmitProgress } from '../terminal/progress.ts';
import { toCount, toVisible } from '../terminal/text.ts';

interface Tally {
  add(view: RolloutView): void;
  read(): SubmitProgress;
  left(): number;
  rewards(): { readonly sum: number; readonly count: number };
  /** One line for each kind of failure, the most frequent first. */
  failures(): string[];
}

const windowMs = 15_000;

export function openTally(total: number, accepted: () => number, now: () => number = () => performance.now()): Tally {
  const startedAt = now();
  const counts = { done: 0, failed: 0, cancelled: 0 };
  const rewards = { sum: 0, count: 0 };
  const failures = new Map<string, { readonly count: number; readonly first: string }>();
  const recent: number[] = [];

  function perSecond(): number | undefined {
    const from = now() - windowMs;
    while (recent[0] !== undefined && recent[0] < from) recent.shift();
    const spanMs = Math.min(windowMs, now() - startedAt);
    return recent.length === 0 || spanMs === 0 ? undefined : (1000 * recent.length) / spanMs;
  }

  return {
    add(view) {
      if (view.state === 'done' || view.state === 'failed' || view.state === 'cancelled') counts[view.state] += 1;
      recent.push(now());
      if (view.reward !== null) {
        rewards.sum += view.reward;
        rewards.count += 1;
      }
      if (view.state === 'failed' && view.failure !== null) {
        const { code, blame, message } = view.failure;
        const known = failures.get(code) ?? {
          count: 0,
          first: `${code} (blame: ${blame}), for example: ${toVisible(message.split('\n')[0] ?? '')}`,
        };
        failures.set(code, { ...known, count: known.count + 1 });
      }
    },
    read: () => ({ total, accepted: accepted(), ...counts, elapsedMs: now() - startedAt, perSecond: perSecond() }),
    left: () => total - ended(counts),
    rewards: () => rewards,
    failures() {
      const sorted = [...failures.values()].sort((a, b) => b.count - a.count);
      return sorted.map(({ count, first }) => `  ${toCount(count)} × ${first}`);
    },
  };
}
