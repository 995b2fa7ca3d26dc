// What the live view knows: the service now, rates over the last seconds, how the last rollouts ended, and the newest events.
// Time is passed in.

import type { Blame, Event } from '@millrace/protocol';
import { blames } from '@millrace/protocol';
import type { ServiceNow } from './service-now.ts';

export interface FailureCount {
  readonly code: string;
  readonly blame: Blame | undefined;
  readonly count: number;
}

/** How the last rollouts ended. */
export interface Ends {
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
  readonly now: ServiceNow | undefined;
  /** Per second, over the last ten; `tokens` is undefined while a turn is sampled and its tokens are not counted yet. */
  readonly rates: { readonly ended: number; readonly turns: number; readonly tokens: number | undefined };
  /** Tokens per second of each backend. */
  readonly backendTokens: Readonly<Record<string, number>>;
  readonly ends: Ends;
  /** The newest last. */
  readonly events: readonly Event[];
  /** What is wrong with the connection, if anything. */
  readonly trouble: string | undefined;
}

export interface WatchRecord {
  addNow(now: ServiceNow, nowMs: number): void;
  /** `live` is false for an event from before the watch began, which no rate counts. */
  addEvent(event: Event, options: { readonly nowMs: number; readonly live: boolean }): void;
  addTrouble(trouble: string): void;
  read(nowMs: number): WatchModel;
}

const windowMs = 10_000;
const eventsKept = 1000;
const endsKept = 500;

interface Sample {
  readonly atMs: number;
  readonly ended?: number;
  readonly turns?: number;
  readonly tokens?: number;
  readonly backend?: { readonly id: string; readonly tokens: number };
}

interface End {
  readonly reward: number | undefined;
  readonly failure: Omit<FailureCount, 'count'> | undefined;
}

export function openWatchRecord(url: string, startedAtMs: number): WatchRecord {
  const events: Event[] = [];
  const ends: End[] = [];
  const counters = new Map<string, { readonly turns: number; readonly tokens: number }>();
  let samples: Sample[] = [];
  let now: ServiceNow | undefined;
  let trouble: string | undefined;

  /** Workers count from their start, so one that is seen for the first time has not grown yet. */
  function addGrowth(id: string, next: { readonly turns: number; readonly tokens: number }, atMs: number): void {
    const before = counters.get(id) ?? next;
    counters.set(id, next);
    samples.push({ atMs, turns: Math.max(0, next.turns - before.turns), tokens: Math.max(0, next.tokens - before.tokens) });
  }

  function addEnd(event: Event): void {
    ends.push(toEnd(event));
    if (ends.length > endsKept) ends.shift();
  }

  return {
    addNow(next, nowMs) {
      now = next;
      trouble = undefined;
      for (const { id, report } of next.status.workers) {
        if (report !== null) addGrowth(id, { turns: report.turns, tokens: report.sampled_tokens }, nowMs);
      }
    },
    addEvent(event, { nowMs, live }) {
      if (event.kind === 'backend-traffic') {
        if (live) samples.push({ atMs: nowMs, backend: { id: event.backend_id ?? '', tokens: Number(event.data.sampled_tokens) || 0 } });
        return;
      }
      events.push(event);
      if (events.length > eventsKept) events.shift();
      if (event.kind !== 'rollout-end') return;
      addEnd(event);
      if (live) samples.push({ atMs: nowMs, ended: 1 });
    },
    addTrouble(next) {
      trouble = next;
    },
    read(nowMs) {
      samples = samples.filter((sample) => sample.atMs > nowMs - windowMs);
      const seconds = Math.max(1000, Math.min(windowMs, nowMs - startedAtMs)) / 1000;
      const sum = (name: 'ended' | 'turns' | 'tokens') => samples.reduce((total, sample) => total + (sample[name] ?? 0), 0) / seconds;
      const rates = { ended: sum('ended'), turns: sum('turns'), tokens: toTokenRate(now, sum('tokens')) };
      const backendTokens = { ...toBackendRates(samples, seconds), ...now?.backendTokens };
      return { url, now, rates, backendTokens, ends: toEnds(ends, now?.recent), events, trouble };
    },
  };
}

/** The service's own rate counts tokens inside a turn; ours counts finished turns, so a zero while calls run means nothing. */
function toTokenRate(now: ServiceNow | undefined, finished: number): number | undefined {
  if (now?.tokensPerSecond !== undefined) return now.tokensPerSecond;
  const calls = now?.status.backends.reduce((total, backend) => total + backend.calls, 0) ?? 0;
  return finished === 0 && calls > 0 ? undefined : finished;
}

function toBackendRates(samples: readonly Sample[], seconds: number): Record<string, number> {
  const rates: Record<string, number> = {};
  for (const { backend } of samples) if (backend !== undefined) rates[backend.id] = (rates[backend.id] ?? 0) + backend.tokens / seconds;
  return rates;
}

function toEnd({ data }: Event): End {
  const { reward, state, code, blame } = data;
  return {
    reward: typeof reward === 'number' ? reward : undefined,
    failure:
      state === 'failed' ? { code: typeof code === 'string' ? code : 'unknown', blame: blames.find((one) => one === blame) } : undefined,
  };
}

const slices = 12;

/** From the events read; from the service where it has seen more. */
function toEnds(ends: readonly End[], recent: ServiceNow['recent']): Ends {
  const rewards = ends.flatMap(({ reward }) => reward ?? []);
  const counts = new Map<string, FailureCount>();
  for (const { failure } of ends) {
    if (failure !== undefined) counts.set(failure.code, { ...failure, count: (counts.get(failure.code)?.count ?? 0) + 1 });
  }
  const failures = [...counts.values()].sort((a, b) => b.count - a.count);
  const trend = toTrend(rewards);
  if (recent !== undefined && recent.ended > ends.length)
    return {
      ended: recent.ended,
      failed: recent.failed,
      rewarded: recent.rewarded,
      meanReward: recent.mean_reward ?? undefined,
      trend,
      failures,
    };
  const failed = failures.reduce((total, { count }) => total + count, 0);
  return { ended: ends.length, failed, rewarded: rewards.length, meanReward: toMean(rewards), trend, failures };
}

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
