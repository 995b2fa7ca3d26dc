// The time line of a rollout: its stages one after the other, and inside the run stage its turns with the time of the model and of tools.

import type { Timings } from '@millrace/protocol';

export interface TimeSpan {
  readonly kind: 'wait' | 'init' | 'run' | 'evaluate' | 'model' | 'tool' | 'cache';
  readonly label: string;
  readonly startMs: number;
  readonly ms: number;
}

interface TurnTimes {
  readonly turn: number;
  readonly model_ms: number;
  readonly tool_ms: number;
  /** When it ended, in milliseconds since 1970. */
  readonly at: number;
}

export function toStages(timings: Timings): TimeSpan[] {
  const parts: [TimeSpan['kind'], string, number][] = [
    ['wait', 'queued', timings.queued_ms],
    ['init', 'init', timings.init_ms],
    ['wait', 'ready', timings.ready_ms],
    ['cache', 'waits for cache', timings.cache_wait_ms],
    ['run', 'run', timings.run_ms],
    ['wait', 'waits for evaluate', timings.evaluate_wait_ms],
    ['evaluate', 'evaluate', timings.evaluate_ms],
  ];
  let startMs = 0;
  return parts.flatMap(([kind, label, ms]) => {
    if (!(ms > 0)) return [];
    const span = { kind, label, startMs, ms };
    startMs += ms;
    return [span];
  });
}

/** Each turn ends with its tools, before which the model answered. Times count from the start of the first turn. */
export function toTurnSpans(turns: readonly TurnTimes[]): TimeSpan[] {
  const [first] = turns;
  if (first === undefined) return [];
  const start = first.at - first.model_ms - first.tool_ms;
  return turns.flatMap(({ turn, model_ms, tool_ms, at }) => {
    const end = at - start;
    const model: TimeSpan = { kind: 'model', label: `turn ${turn}: model`, startMs: Math.max(0, end - tool_ms - model_ms), ms: model_ms };
    const tool: TimeSpan = { kind: 'tool', label: `turn ${turn}: tools`, startMs: Math.max(0, end - tool_ms), ms: tool_ms };
    return tool_ms > 0 ? [model, tool] : [model];
  });
}
