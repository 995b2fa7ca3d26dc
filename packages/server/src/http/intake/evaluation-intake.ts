// Intake of evaluations: the request is checked for its fields, its scenario and each of its tasks before anything is stored.

import { randomUUID } from 'node:crypto';
import type { Clock } from '@millrace/base/clock';
import { Pace } from '@millrace/base/pace';
import { type EvaluationId, type EvaluationRequest, type EvaluationView, evaluationId, RolloutError } from '@millrace/protocol';
import { highestRewardOf, parseTask, type Scenario } from '@millrace/scenarios';
import type { NewEvaluation } from '@millrace/store';
import type { AppContext } from '../context/context.ts';
import { toWaitingEvaluations } from '../context/waiting.ts';
import { toDigest } from '../request/digest.ts';
import { checkTasks } from './batch-intake.ts';
import { checkAgent, checkIntake, openPause, unknownScenario } from './intake.ts';

/** Group and rollout ids are derived from it, and have the same limit. */
const longestEvaluationId = 100;
const mostSamples = 1_000_000;

export async function createEvaluation(request: EvaluationRequest, context: AppContext): Promise<EvaluationView> {
  checkIntake(context);
  checkSize(request);
  const scenario = context.scenarios.get(request.scenario);
  if (scenario === undefined) throw unknownScenario(['scenario'], request.scenario, context.scenarios);
  checkAgent(request.agent, ['agent'], context);
  const { id = evaluationId.parse(`e-${randomUUID()}`), tasks, ...plan } = request;
  const digest = await new Pace(context.clock).run(toDigest({ ...plan, tasks }));
  await checkTasks(tasks, scenario, context);
  const outcome = await context.store.createEvaluation({
    id,
    digest,
    plan: { ...plan, scenario: scenario.name },
    tasks: await withThresholds(request, scenario, context.clock),
  });
  if (outcome === 'conflict') throw new RolloutError('conflict', `evaluation ${id} exists with different content`, { details: { id } });
  return readEvaluationView(id, context);
}

const retriedPerSlice = 500;

/** In slices, so that no other write waits long. A request that is interrupted has retried some, and can be repeated. */
export async function retryEvaluation(id: EvaluationId, context: AppContext): Promise<EvaluationView> {
  checkIntake(context);
  for (;;) {
    const retried = await context.store.retryUnscored(id, { limit: retriedPerSlice });
    if (retried === 'unknown') throw unknownEvaluation(id);
    if (retried === 'cancelled') throw new RolloutError('conflict', `evaluation ${id} was cancelled: it cannot be retried; start it again`);
    if (retried < retriedPerSlice) return readEvaluationView(id, context);
  }
}

export async function readEvaluationView(id: EvaluationId, context: Pick<AppContext, 'store' | 'status'>): Promise<EvaluationView> {
  const record = await context.store.evaluation(id);
  const [view] = record ? await toWaitingEvaluations([record], context) : [];
  if (view === undefined) throw unknownEvaluation(id);
  return view;
}

function unknownEvaluation(id: EvaluationId): RolloutError {
  return new RolloutError('not-found', `there is no evaluation ${id}`, { details: { reason: 'unknown' } });
}

function checkSize({ id, tasks, n }: EvaluationRequest): void {
  if (id !== undefined && id.length > longestEvaluationId)
    throw new RolloutError('bad-request', `id: an evaluation id has at most ${longestEvaluationId} characters`);
  if (tasks.length * n > mostSamples)
    throw new RolloutError('bad-request', `n: ${tasks.length} tasks × ${n} samples are more than ${mostSamples}`);
}

/** The declared threshold, or the highest reward of each task. */
async function withThresholds({ tasks, correct_at }: EvaluationRequest, scenario: Scenario, clock: Clock): Promise<NewEvaluation['tasks']> {
  const thresholds: number[] = [];
  const pause = openPause(clock);
  for (const task of tasks) {
    thresholds.push(correct_at ?? (await highestRewardOf(scenario, await parseTask(scenario, task))));
    await pause();
  }
  return tasks.map((task, index) => ({ task, correctAt: thresholds[index] ?? 1 }));
}
