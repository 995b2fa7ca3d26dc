// What a run left behind: the counters and histograms of engines, the turns that agents wrote down, and the sessions that ended.

import { readFileSync } from 'node:fs';

/** The metrics of all engines at one moment. */
export class EngineReading {
  readonly atMs = Date.now();
  readonly #lines: readonly string[];

  constructor(pages: readonly string[]) {
    this.#lines = pages.join('\n').split('\n');
  }

  /** Summed over engines and labels. */
  sum(metric: string): number {
    return this.#find(metric).reduce((total, line) => total + lastNumber(line), 0);
  }

  /** What fell into each bucket of a histogram or one below it, by the upper bound. */
  buckets(metric: string): ReadonlyMap<number, number> {
    const found = new Map<number, number>();
    for (const line of this.#find(`${metric}_bucket`)) {
      const bound = /le="([^"]+)"/.exec(line)?.[1];
      const upper = bound === '+Inf' ? Number.POSITIVE_INFINITY : Number(bound);
      found.set(upper, (found.get(upper) ?? 0) + lastNumber(line));
    }
    return found;
  }

  /** A label of a metric, once for each engine. */
  labels(metric: string, label: string): readonly string[] {
    return this.#find(metric).flatMap((line) => line.match(new RegExp(`${label}="([^"]*)"`))?.[1] ?? []);
  }

  #find(metric: string): readonly string[] {
    return this.#lines.filter((line) => line.startsWith(`${metric}{`) || line.startsWith(`${metric} `));
  }
}

export async function readEngines(urls: readonly string[]): Promise<EngineReading> {
  return new EngineReading(await Promise.all(urls.map(async (url) => await (await fetch(`${url}/metrics`)).text())));
}

/** Between two readings, of a histogram: the value below which that share lies, evenly spread within its bucket. */
export function quantileOf(
  metric: string,
  { before, after, share }: { before: EngineReading; after: EngineReading; share: number },
): number {
  const [old, now] = [before.buckets(metric), after.buckets(metric)];
  const counts = [...now].sort(([a], [b]) => a - b).map(([upper, count]) => ({ upper, count: count - (old.get(upper) ?? 0) }));
  const wanted = share * (counts.at(-1)?.count ?? 0);
  let [lower, below] = [0, 0];
  for (const { upper, count } of counts) {
    if (count >= wanted && count > below)
      return round(Number.isFinite(upper) ? lower + ((upper - lower) * (wanted - below)) / (count - below) : lower);
    [lower, below] = [upper, count];
  }
  return 0;
}

interface TurnLine {
  readonly at: number;
  readonly seed: number;
  readonly number: number;
  /** From the end of a tool to the end of the turn; absent where a turn is asked for. */
  readonly ms?: number;
}

/** Of turns after the first of a session. */
interface TurnsSeen {
  readonly turns: number;
  /** Waiting for room, in the queue of the engine, and sampling. */
  readonly turnS: Spread;
  readonly agents: number;
  /** For how long the oldest turn that was asked for has not ended. */
  readonly openTurnS: number;
}

export function readTurns(log: string, { fromMs, untilMs }: { readonly fromMs: number; readonly untilMs: number }): TurnsSeen {
  const lines = readFileSync(log, 'utf8')
    .trim()
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as TurnLine);
  const open = new Map<number, number>();
  const seen: { readonly seed: number; readonly ms: number }[] = [];
  for (const { at, seed, ms } of lines) {
    if (ms === undefined) open.set(seed, at);
    // The first turn of a session has no line that asks for it: its time would have the wait for a slot in it.
    else if (open.delete(seed) && at > fromMs && at <= untilMs) seen.push({ seed, ms });
  }
  return {
    turns: seen.length,
    turnS: spreadOf(seen.map(({ ms }) => ms)),
    agents: new Set(seen.map(({ seed }) => seed)).size,
    openTurnS: round((untilMs - Math.min(untilMs, ...open.values())) / 1000),
  };
}

interface EndedRollout {
  readonly result: { readonly timings: { readonly run_ms: number; readonly cache_wait_ms: number } } | null;
}

/** Whole sessions that ended since the start, with their waits for the KV cache, and those waits alone. */
export async function readSessions(
  url: string,
): Promise<{ readonly sessions: number; readonly sessionS: Spread; readonly cacheWaitS: Spread }> {
  const { rollouts } = (await (await fetch(`${url}/v1/rollouts?state=done&limit=1000`)).json()) as {
    readonly rollouts: readonly EndedRollout[];
  };
  const timings = rollouts.flatMap(({ result }) => (result ? [result.timings] : []));
  return {
    sessions: timings.length,
    sessionS: spreadOf(timings.map(({ run_ms, cache_wait_ms }) => run_ms + cache_wait_ms)),
    cacheWaitS: spreadOf(timings.map(({ cache_wait_ms }) => cache_wait_ms)),
  };
}

/** In seconds. */
interface Spread {
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
  readonly longest: number;
}

function spreadOf(values: readonly number[]): Spread {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (share: number) => round((sorted[Math.floor(share * (sorted.length - 1))] ?? 0) / 1000);
  return { p50: at(0.5), p90: at(0.9), p99: at(0.99), longest: at(1) };
}

function lastNumber(line: string): number {
  return Number(line.slice(line.lastIndexOf(' ') + 1));
}

function round(value: number): number {
  return Math.round(100 * value) / 100;
}
