// Event loop lag, as percentiles over windows of ten seconds. It shows whether a process keeps up.

import { monitorEventLoopDelay } from 'node:perf_hooks';
import { systemClock } from './clock.ts';

interface LagReport {
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

export interface LoopLag extends Disposable {
  /** Milliseconds beyond the timer's resolution in the last complete window, or so far in the first one. */
  read(): LagReport;
}

const resolutionMs = 10;
/** Long enough that the p99 is more than a single reading. */
const windowMs = 10_000;

export function openLoopLag(): LoopLag {
  const histogram = monitorEventLoopDelay({ resolution: resolutionMs });
  histogram.enable();
  let startedAt = systemClock.monotonic();
  let complete: LagReport | undefined;
  const late = (nanoseconds: number) => (Number.isFinite(nanoseconds) ? Math.max(0, nanoseconds / 1e6 - resolutionMs) : 0);
  return {
    read() {
      const current = { p50: late(histogram.percentile(50)), p99: late(histogram.percentile(99)), max: late(histogram.max) };
      if (systemClock.monotonic() - startedAt >= windowMs) {
        complete = current;
        histogram.reset();
        startedAt = systemClock.monotonic();
      }
      return complete ?? current;
    },
    [Symbol.dispose]: () => void histogram.disable(),
  };
}
