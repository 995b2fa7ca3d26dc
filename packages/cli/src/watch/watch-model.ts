// What the live view knows: the status of the service, rates over the last seconds, how the last rollouts ended, and the newest
// events. Time is passed in.

import type { Blame, Event, ServiceStatus } from '@millrace/protocol';
import { blames } from '@millrace/protocol';

interface FailureCount {
  readonly code: string;
  readonly blame: Blame | undefined;
  readonly count: number;
}

/** How the last rollouts ended, as far as their events were read. */
export interface LastEnds {
  readonly ended: number;
  readonly failed: number;
  readonly rewarded: number;
  readonly meanReward: number | undefined;
  /** Mean rewards of equal slices in time, the newest last. */
  readonly trend: readonly number[];
  /** The most frequent first. */
  readonly failures: readonly FailureCount[];
}

export interface WatchModel {
  readonly url: string;
  readonly status: ServiceStatus | undefined;
  /** Over the last ten seconds. */
  readonly turnsPerSecond: number;
  readonly ends: LastEnds;
  /** The newest last. */
  readonly events: readonly Event[];
  /** What is wrong with the connection, if anything. */
  readonly trouble: string | undefined;
}

export interface WatchRecord {
  addStatus(status: ServiceStatus, nowMs: number): void;
  addEvent(event: Event): void;
  addTrouble(trouble: string): void;
  read(nowMs: number): WatchModel;
}

const windowMs = 10_000;
const eventsKept = 1000;
const endsKept = 500;

interface Counted {
  readonly atMs: number;
  readonly count: number;
}

interface RolloutEnd {
  readonly reward: number | undefined;
  readonly failure: Omit<FailureCount, 'count'> | undefined;
}

export function openWatchRecord(url: string, startedAtMs: number): WatchRecord {
  const events: Event[] = [];
  const ends: RolloutEnd[] = [];
  const turnsOfWorkers = new Map<string, number>();
  let turns: Counted[] = [];
  let status: ServiceStatus | undefined;
  let trouble: string | undefined;

  return {
    addStatus(next, nowMs) {
      status = next;
      trouble = undefined;
      for (const { id, report } of next.workers) {
        if (report === null) continue;
        // Workers count from their start, so one that is seen for the first time has not grown yet.
        turns.push({ atMs: nowMs, count: Math.max(0, report.turns - (turnsOfWorkers.get(id) ?? report.turns)) });
        turnsOfWorkers.set(id, report.turns);
      }
    },
    addEvent(event) {
      if (event.kind === 'backend-traffic') return;
      events.push(event);
      if (events.length > eventsKept) events.shift();
      if (event.kind !== 'rollout-end') return;
      ends.push(toRolloutEnd(event));
      if (ends.length > endsKept) ends.shift();
    },
    addTrouble(next) {
      trouble = next;
    },
    read(nowMs) {
      const isRecent = ({ atMs }: Counted) => atMs > nowMs - windowMs;
      turns = turns.filter(isRecent);
      const seconds = Math.max(1000, Math.min(windowMs, nowMs - startedAtMs)) / 1000;
      const turnsPerSecond = turns.reduce((total, { count }) => total + count, 0) / seconds;
      return { url, status, turnsPerSecond, ends: toLastEnds(ends), events, trouble };
    },
  };
}

/** Undefined while calls run and nothing is counted: some engines count tokens only when a call ends. */
export function toTokensPerSecond({ tokens_per_s: tokens, backends }: ServiceStatus): number | undefined {
  return tokens === 0 && backends.some(({ calls }) => calls > 0) ? undefined : tokens;
}

function toRolloutEnd({ data }: Event): RolloutEnd {
  const { reward, state, code, blame } = data;
  return {
    reward: typeof reward === 'number' ? reward : undefined,
    failure:
      state === 'failed' ? { code: typeof code === 'string' ? code : 'unknown', blame: blames.find((one) => one === blame) } : undefined,
  };
}

function toLastEnds(ends: readonly RolloutEnd[]): LastEnds {
  const rewards = ends.flatMap(({ reward }) => reward ?? []);
  const counts = new Map<string, FailureCount>();
  for (const { failure } of ends) {
    if (failure !== undefined) counts.set(failure.code, { ...failure, count: (counts.get(failure.code)?.count ?? 0) + 1 });
  }
  const failures = [...counts.values()].sort((a, b) => b.count - a.count);
  const failed = failures.reduce((total, { count }) => total + count, 0);
  return { ended: ends.length, failed, rewarded: rewards.length, meanReward: toMean(rewards), trend: toTrend(rewards), failures };
}

const slices = 12;

function toTrend(rewards: readonly number[]): number[] {
  const size = Math.ceil(rewards.length / slices);
  if (rewards.length < 2 * slices) return [];
  return Array.from({ length: slices }, (_, index) => toMean(rewards.slice(index * size, (index + 1) * size))).flatMap(
    (mean) => mean ?? [],
  );
}

function toMean(values: readonly number[]): number | undefined {
  return values.length === 0 ? undefined : values.reduce((total, value) => total + value, 0) / values.length;
}
