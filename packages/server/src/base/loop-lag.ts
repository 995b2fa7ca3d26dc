// How late the event loop runs, as percentiles since the last look: the number that shows whether a process keeps up.

import { monitorEventLoopDelay } from 'node:perf_hooks';

export interface LagReport {
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

export interface LoopLag extends Disposable {
  /** Milliseconds beyond the timer's own resolution, since the last call. */
  read(): LagReport;
}

const resolutionMs = 10;

export function openLoopLag(): LoopLag {
  const histogram = monitorEventLoopDelay({ resolution: resolutionMs });
  histogram.enable();
  const late = (nanoseconds: number) => (Number.isFinite(nanoseconds) ? Math.max(0, nanoseconds / 1e6 - resolutionMs) : 0);
  return {
    read() {
      const report = { p50: late(histogram.percentile(50)), p99: late(histogram.percentile(99)), max: late(histogram.max) };
      histogram.reset();
      return report;
    },
    [Symbol.dispose]: () => void histogram.disable(),
  };
}
