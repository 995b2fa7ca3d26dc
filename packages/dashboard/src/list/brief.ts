// A rollout as one line of the dashboard's list: what can be filtered, sorted and counted, in a few hundred bytes.

import type { BriefRollout, RolloutView, Timings } from '@millrace/protocol';

/** What a line is made from: a record of the store, or a line of a file. */
export type BriefSource = Pick<
  RolloutView,
  'id' | 'scenario' | 'group' | 'state' | 'attempt' | 'result' | 'failure' | 'created_at' | 'ended_at' | 'metadata'
>;

export interface IndexedRollout {
  readonly brief: BriefRollout;
  /** What the text filter looks through, in lower case. */
  readonly text: string;
}

/** Longer messages are read on the page of the rollout. */
const longestMessage = 300;

export function toIndexed(source: BriefSource): IndexedRollout {
  const { id, scenario, group, result, failure, metadata } = source;
  const batch = typeof metadata?.batch === 'string' ? metadata.batch : null;
  const tokens = result?.tokens;
  const brief: BriefRollout = {
    id,
    scenario,
    group,
    batch,
    state: source.state,
    attempt: source.attempt,
    reward: result?.reward ?? null,
    stop_reason: result?.stop_reason ?? null,
    turns: result?.turns ?? 0,
    sampled: tokens?.sampled ?? 0,
    context: tokens === undefined ? 0 : tokens.prompt + tokens.sampled + tokens.observation,
    busy_ms: result === null ? 0 : busyMs(result.timings),
    code: failure?.code ?? null,
    blame: failure?.blame ?? null,
    message: failure?.message.slice(0, longestMessage) ?? null,
    version: result?.policy_versions?.last ?? null,
    created_at: Date.parse(source.created_at),
    ended_at: source.ended_at === null ? null : Date.parse(source.ended_at),
  };
  const extra = metadata === null ? '' : JSON.stringify(metadata).slice(0, longestMessage);
  const text = [id, group, scenario, brief.code, brief.message, brief.stop_reason, extra].join('\n').toLowerCase();
  return { brief, text };
}

function busyMs({ init_ms, run_ms, evaluate_ms }: Timings): number {
  return init_ms + run_ms + evaluate_ms;
}
