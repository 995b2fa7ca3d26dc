// Converts evaluations and their tasks to their wire views.

import type { EvaluationTask, EvaluationView } from '@millrace/protocol';
import { type EvaluationRecord, type TaskRecord, toTime } from '@millrace/store';
import { countSamples, estimateDraws, estimateMean, passAll, passAt } from './statistics.ts';

export function toEvaluationView(record: EvaluationRecord): EvaluationView {
  const { plan, scores } = record;
  const { scenario, n, sampling, limits } = plan;
  const [ended, scored] = [countSamples(scores, 'ended'), countSamples(scores, 'scored')];
  return {
    id: record.id,
    state: record.state,
    scenario,
    tasks: record.tasks,
    n,
    samples: {
      total: record.tasks * n,
      begun: record.begunTasks * n,
      ended,
      scored,
      unscored: ended - scored,
      correct: countSamples(scores, 'correct'),
    },
    mean: estimateMean(record),
    pass_at: estimateDraws(scores, n, passAt),
    pass_all: estimateDraws(scores, n, passAll),
    failures: [...record.failures],
    stop_reasons: { ...record.stopReasons },
    turns: record.turns,
    sampled_tokens: record.sampledTokens,
    policy_versions: record.versions ?? null,
    sampling,
    limits,
    correct_at: plan.correct_at ?? null,
    created_at: toTime(record.createdAtMs),
    ended_at: record.endedAtMs === undefined ? null : toTime(record.endedAtMs),
    metadata: plan.metadata ?? null,
  };
}

export function toEvaluationTask({ index, task, correctAt, scored, correct, rewardSum, samples }: TaskRecord): EvaluationTask {
  return {
    index,
    task: { ...task },
    correct_at: correctAt,
    scored,
    correct,
    mean: scored === 0 ? null : rewardSum / scored,
    samples: samples.map(({ id, state, reward = null, stopReason = null, failure }) => ({
      rollout: id,
      state,
      reward,
      stop_reason: stopReason,
      failure: failure ? { blame: failure.blame, code: failure.code, message: failure.message } : null,
    })),
  };
}
