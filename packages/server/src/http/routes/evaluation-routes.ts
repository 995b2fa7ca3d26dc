// The evaluation routes: create, get, list, read the tasks with their samples, retry, cancel.

import { definedOf, routes } from '@millrace/protocol';
import type { FastifyInstance } from 'fastify';
import { toEvaluationTask } from '../../batches/evaluation/evaluation-view.ts';
import { type AppContext, closedSignal } from '../context/context.ts';
import { toWaitingEvaluations } from '../context/waiting.ts';
import { createEvaluation, readEvaluationView, retryEvaluation } from '../intake/evaluation-intake.ts';
import { mount, type RouteInput } from '../request/mount.ts';

export function mountEvaluations(app: FastifyInstance, context: AppContext): void {
  const { store } = context;
  mount(app, routes.createEvaluation, ({ body }) => createEvaluation(body, context));
  mount(app, routes.listEvaluations, async ({ query }) => {
    const { evaluations, next } = await store.evaluations(definedOf(query));
    return { evaluations: await toWaitingEvaluations(evaluations, context), next: next ?? null };
  });
  mount(app, routes.getEvaluation, (input) => getEvaluation(input, context));
  mount(app, routes.readEvaluationTasks, (input) => readTasks(input, context));
  mount(app, routes.retryEvaluation, ({ params: { id } }) => retryEvaluation(id, context));
  mount(app, routes.cancelEvaluation, async ({ params: { id } }) => {
    await store.cancelEvaluation(id);
    return readEvaluationView(id, context);
  });
}

async function getEvaluation({ params: { id }, query: { wait }, reply }: RouteInput<typeof routes.getEvaluation>, context: AppContext) {
  const signal = closedSignal(reply);
  const until = context.clock.monotonic() + wait * 1000;
  for (;;) {
    using watch = context.waiters.watchEvaluation(id);
    const view = await readEvaluationView(id, context);
    const leftMs = until - context.clock.monotonic();
    if (view.state !== 'open' || leftMs <= 0 || signal.aborted || context.draining.aborted) return view;
    await watch.until({ ms: leftMs, signal });
  }
}

async function readTasks({ params: { id }, query: { from, limit } }: RouteInput<typeof routes.readEvaluationTasks>, context: AppContext) {
  const { tasks: total } = await readEvaluationView(id, context);
  const tasks = await context.store.evaluationTasks(id, { from, limit });
  return { tasks: tasks.map(toEvaluationTask), next: from + limit < total ? from + limit : null };
}
