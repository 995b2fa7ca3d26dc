// Evaluations: a fixed set of tasks, each sampled n times. Creating one is safe to repeat with its id, so a program that was killed runs
// again and goes on from what is done.

import { randomUUID } from 'node:crypto';
import {
  definedOf,
  type EvaluationInput,
  type EvaluationState,
  type EvaluationTask,
  type EvaluationView,
  evaluationList,
  evaluationTaskPage,
  evaluationView,
  routes,
  toPath,
} from '@millrace/protocol';
import type { CallOptions, Transport } from './transport.ts';

export interface Evaluations {
  /** Safe to repeat with the same id; makes an id if there is none. */
  create(evaluation: EvaluationInput, options?: CallOptions): Promise<EvaluationView>;
  /** Its progress, and the numbers so far. */
  get(id: string, options?: CallOptions): Promise<EvaluationView>;
  /** Resolves when every sample has ended, or the evaluation was cancelled. */
  wait(id: string, options?: CallOptions): Promise<EvaluationView>;
  /** Oldest first. */
  list(options?: CallOptions & { readonly state?: EvaluationState }): AsyncIterable<EvaluationView>;
  /** Every task in order, with its samples so far. */
  tasks(id: string, options?: CallOptions): AsyncIterable<EvaluationTask>;
  /** Takes every sample that ended without a reward again. */
  retry(id: string, options?: CallOptions): Promise<EvaluationView>;
  /** What was measured stays readable. */
  cancel(id: string, options?: CallOptions): Promise<EvaluationView>;
}

const pollSeconds = 25;
const tasksPerPage = 200;

export function openEvaluations(transport: Transport): Evaluations {
  const { createEvaluation, getEvaluation } = routes;
  const one = (id: string) => toPath(getEvaluation.path, { id });
  return {
    create: (evaluation, options = {}) => {
      const body = { id: `e-${randomUUID()}`, ...evaluation };
      return transport.json({ method: 'POST', path: createEvaluation.path, body, ...options }, evaluationView);
    },
    get: (id, options = {}) => transport.json({ method: 'GET', path: one(id), ...options }, evaluationView),
    async wait(id, options = {}) {
      const poll = { method: 'GET', path: one(id), query: { wait: pollSeconds }, waitMs: pollSeconds * 1000, ...options } as const;
      for (;;) {
        const view = await transport.json(poll, evaluationView);
        if (view.state !== 'open') return view;
      }
    },
    list: (options) => listEvaluations(transport, options ?? {}),
    tasks: (id, options) => readTasks(transport, id, options ?? {}),
    retry: (id, options = {}) =>
      transport.json({ method: 'POST', path: toPath(routes.retryEvaluation.path, { id }), ...options }, evaluationView),
    cancel: (id, options = {}) => transport.json({ method: 'DELETE', path: one(id), ...options }, evaluationView),
  };
}

async function* listEvaluations(
  transport: Transport,
  { signal, ...filter }: CallOptions & { readonly state?: EvaluationState },
): AsyncGenerator<EvaluationView> {
  let after: string | undefined;
  do {
    const call = { method: 'GET', path: routes.listEvaluations.path, query: { ...filter, after }, ...definedOf({ signal }) } as const;
    const page = await transport.json(call, evaluationList);
    yield* page.evaluations;
    after = page.next ?? undefined;
  } while (after !== undefined);
}

async function* readTasks(transport: Transport, id: string, options: CallOptions): AsyncGenerator<EvaluationTask> {
  const path = toPath(routes.readEvaluationTasks.path, { id });
  for (let from: number | null = 0; from !== null; ) {
    const page: { tasks: EvaluationTask[]; next: number | null } = await transport.json(
      { method: 'GET', path, query: { from, limit: tasksPerPage }, ...options },
      evaluationTaskPage,
    );
    yield* page.tasks;
    from = page.next;
  }
}
