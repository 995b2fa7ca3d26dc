// How late the event loop runs, as percentiles over whole windows of ten seconds: the number that shows whether a process keeps up.

import { monitorEventLoopDelay } from 'node:perf_hooks';
import { systemClock } from './clock.ts';

export interface LagReport {
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

export interface LoopLag extends Disposable {
  /** Milliseconds beyond the timer's own resolution, in the newest whole window; in the first one, so far. */
  read(): LagReport;
}

const resolutionMs = 10;
/** Long enough for a hundredth of the readings to be more than one of them. */
const windowMs = 10_000;

export function openLoopLag(): LoopLag {
  const histogram = monitorEventLoopDelay({ resolution: resolutionMs });
  histogram.enable();
  let startedAt = systemClock.monotonic();
  let whole: LagReport | undefined;
  const late = (nanoseconds: number) => (Number.isFinite(nanoseconds) ? Math.max(0, nanoseconds / 1e6 - resolutionMs) : 0);
  return {
    read() {
      const current = { p50: late(histogram.percentile(50)), p99: late(histogram.percentile(99)), max: late(histogram.max) };
      if (systemClock.monotonic() - startedAt >= windowMs) {
        whole = current;
        histogram.reset();
        startedAt = systemClock.monotonic();
      }
      return whole ?? current;
    },
    [Symbol.dispose]: () => void histogram.disable(),
  };
}
