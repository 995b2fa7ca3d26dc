// What the live view knows: the last status, rates over the last seconds, failures and the newest events. Time is handed in.

import { type Blame, blames, type Event, type ServiceStatus } from '@millrace/protocol';

export interface WatchModel {
  readonly url: string;
  readonly status: ServiceStatus | undefined;
  /** Per second, over the last ten. */
  readonly rates: { readonly ended: number; readonly turns: number; readonly tokens: number };
  /** Rollouts that failed, by blame, as far back as the events read go. */
  readonly failures: Readonly<Partial<Record<Blame, number>>>;
  /** The newest last. */
  readonly events: readonly Event[];
  /** What is wrong with the connection, if anything. */
  readonly trouble: string | undefined;
}

export interface WatchRecord {
  addStatus(status: ServiceStatus, nowMs: number): void;
  /** `live` is false for one from before the watch began, which no rate counts. */
  addEvent(event: Event, options: { readonly nowMs: number; readonly live: boolean }): void;
  addTrouble(trouble: string): void;
  read(nowMs: number): WatchModel;
}

const windowMs = 10_000;
const eventsKept = 200;

interface Sample {
  readonly atMs: number;
  readonly ended: number;
  readonly turns: number;
  readonly tokens: number;
}

export function openWatchRecord(url: string, startedAtMs: number): WatchRecord {
  const failures: Partial<Record<Blame, number>> = {};
  const events: Event[] = [];
  const counters = new Map<string, { readonly turns: number; readonly tokens: number }>();
  let samples: Sample[] = [];
  let status: ServiceStatus | undefined;
  let trouble: string | undefined;

  /** Workers count since they started; one that is seen for the first time has no growth yet. */
  function addGrowth(id: string, now: { readonly turns: number; readonly tokens: number }, atMs: number): void {
    const before = counters.get(id) ?? now;
    counters.set(id, now);
    samples.push({ atMs, ended: 0, turns: Math.max(0, now.turns - before.turns), tokens: Math.max(0, now.tokens - before.tokens) });
  }

  return {
    addStatus(next, nowMs) {
      status = next;
      trouble = undefined;
      for (const { id, report } of next.workers) {
        if (report !== null) addGrowth(id, { turns: report.turns, tokens: report.sampled_tokens }, nowMs);
      }
    },
    addEvent(event, { nowMs, live }) {
      events.push(event);
      if (events.length > eventsKept) events.shift();
      if (event.kind !== 'rollout-end') return;
      if (live) samples.push({ atMs: nowMs, ended: 1, turns: 0, tokens: 0 });
      const blame = blames.find((one) => one === event.data.blame);
      if (blame !== undefined && event.data.state === 'failed') failures[blame] = (failures[blame] ?? 0) + 1;
    },
    addTrouble(next) {
      trouble = next;
    },
    read(nowMs) {
      samples = samples.filter((sample) => sample.atMs > nowMs - windowMs);
      const seconds = Math.max(1000, Math.min(windowMs, nowMs - startedAtMs)) / 1000;
      const sum = (name: 'ended' | 'turns' | 'tokens') => samples.reduce((total, sample) => total + sample[name], 0) / seconds;
      return { url, status, rates: { ended: sum('ended'), turns: sum('turns'), tokens: sum('tokens') }, failures, events, trouble };
    },
  };
}
