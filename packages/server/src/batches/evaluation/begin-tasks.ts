// Adds the samples of evaluations to the queue, a few tasks at a time: enough that workers never wait for them, and no more, so that
// cancelling is quick and the queue stays short. All state is in the store.

import { type Log, stackOf } from '@millrace/base/log';
import { definedOf, type EvaluationId, groupId, rolloutId } from '@millrace/protocol';
import type { EvaluationPlan, NewRollout, Store, Task, UnbegunEvaluation } from '@millrace/store';

/** Queued samples of one evaluation: at least this many, or twice the slots of all workers. */
const leastQueued = 64;

/** Returns whether tasks have begun. An evaluation that cannot continue is logged, and stops no other. */
export async function beginEvaluationTasks(
  evaluations: readonly UnbegunEvaluation[],
  { store, log }: { readonly store: Store; readonly log: Log },
): Promise<boolean> {
  if (evaluations.length === 0) return false;
  const { slots } = await store.load();
  const wanted = Math.max(leastQueued, 2 * slots);
  const begun = await Promise.all(
    evaluations.map(async (one) => {
      try {
        return await beginSome(one, wanted, store);
      } catch (error) {
        log.error('evaluation-stuck', { evaluation: one.id, error: stackOf(error) });
        return false;
      }
    }),
  );
  return begun.includes(true);
}

async function beginSome(evaluation: UnbegunEvaluation, wanted: number, store: Store): Promise<boolean> {
  const { id, plan, begunTasks: begun, queued } = evaluation;
  const limit = Math.ceil((wanted - queued) / plan.n);
  if (limit <= 0) return false;
  const tasks = await store.evaluationTasks(id, { from: begun, limit });
  const samples = tasks.map(({ index, task }) => makeSamples({ evaluation: id, index, task, plan }));
  return store.beginTasks(id, { begun, samples });
}

interface SampledTask {
  readonly evaluation: EvaluationId;
  readonly index: number;
  readonly task: Task;
  readonly plan: EvaluationPlan;
}

/** Ids derive from the evaluation's, so making them twice gives the same rollouts. With a seed, each sample of a task gets a different one. */
function makeSamples({ evaluation, index, task, plan }: SampledTask): NewRollout[] {
  const { scenario, n, limits, requires, date, agent } = plan;
  const group = groupId.parse(`${evaluation}:${index}`);
  return Array.from({ length: n }, (_, number) => {
    const id = rolloutId.parse(`${group}:${number}`);
    const { seed } = plan.sampling;
    const sampling = { ...plan.sampling, ...definedOf({ seed: seed === undefined ? undefined : seed + number }) };
    const submission = {
      id,
      scenario,
      task: { ...task },
      group,
      sampling,
      limits,
      metadata: { evaluation },
      ...definedOf({ requires, date, agent }),
    };
    return { id, submission, digest: `sample of ${group}` };
  });
}
