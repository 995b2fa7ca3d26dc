// ProRL Agent's seven routes, so that its unchanged clients work. They are a thin layer: each request becomes an ordinary rollout,
// durable and listed like any other.

import { randomUUID } from 'node:crypto';
import {
  isTerminal,
  limits,
  messageOf,
  type ProcessReply,
  type ProcessRequest,
  RolloutError,
  type RolloutId,
  routes,
  type Submission,
  sampling,
} from '@millrace/protocol';
import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { type AppContext, closedSignal, tombstoneMs } from '../context/context.ts';
import { checkIntake, checkTask, submitAll, toNewRollout, toRolloutId } from '../intake/intake.ts';
import { refuseImages } from '../intake/refuse-images.ts';
import { check } from '../request/check.ts';
import { sendError, toReplyError } from '../request/errors.ts';
import { mount, type RouteInput } from '../request/mount.ts';
import { waitForEnd } from '../routes/rollout-routes.ts';
import { addServer } from './add-server.ts';
import { toProcessReply, toProrlStatus, toTask, toWantedId } from './prorl-mapping.ts';
import { parseInstance, toSettings } from './prorl-params.ts';
import { findScenario } from './prorl-registry.ts';

/** After a clear, how long /process waits for the next backend: trainers replace servers by clearing and adding. */
const swapMs = 10_000;
/** What a job may take in all, waiting included, is twice its time and this. */
const graceMs = 10_000;

/** One /process call in progress. */
interface Job {
  readonly name: string | undefined;
  id?: RolloutId;
  cancelled: boolean;
}

class ProrlServer {
  readonly #context: AppContext;
  readonly #jobs = new Set<Job>();
  #running = false;
  /** When the backends were cleared; undefined once one was added. */
  #clearedAt: number | undefined;
  #added = Promise.withResolvers<void>();

  constructor(context: AppContext) {
    this.#context = context;
  }

  start(): void {
    if (this.#running) throw new RolloutError('bad-request', 'Server is already running');
    this.#running = true;
  }

  async stop(): Promise<void> {
    this.checkRunning();
    this.#running = false;
    await this.#cancelAll([...this.#jobs]);
  }

  checkRunning(): void {
    if (!this.#running) throw new RolloutError('not-running', 'Server is not running. Please start the server first.');
  }

  get pending(): number {
    return this.#jobs.size;
  }

  async process(request: ProcessRequest, signal: AbortSignal): Promise<ProcessReply> {
    this.checkRunning();
    checkIntake(this.#context);
    const submission = await toSubmission(request, this.#context);
    await this.#needBackend();
    const wanted = toWantedId(request);
    const job: Job = { name: wanted, cancelled: false };
    this.#jobs.add(job);
    try {
      const id = await this.#submit(submission, wanted);
      job.id = id;
      if (job.cancelled) await this.#cancel(job);
      return await this.#finish(request, id, signal);
    } finally {
      this.#jobs.delete(job);
    }
  }

  async addServer(address: string): Promise<string> {
    const status = await addServer(address, this.#context);
    this.#clearedAt = undefined;
    this.#added.resolve();
    this.#added = Promise.withResolvers();
    return status;
  }

  async clearServers(): Promise<void> {
    await this.#context.store.clearBackends();
    this.#clearedAt = this.#context.clock.monotonic();
  }

  async #needBackend(): Promise<void> {
    const { store, clock } = this.#context;
    const { promise } = this.#added;
    if ((await store.backends()).length > 0) return;
    const left = this.#clearedAt === undefined ? 0 : this.#clearedAt + swapMs - clock.monotonic();
    if (left > 0) {
      const late = Promise.withResolvers<void>();
      const stop = clock.after(left, late.resolve);
      await Promise.race([promise, late.promise]);
      stop();
      if ((await store.backends()).length > 0) return;
    }
    const message = 'No LLM server addresses configured. Please add at least one LLM server address.';
    throw new RolloutError('not-running', message);
  }

  /** Works even before the job arrives. */
  async cancel(name: string): Promise<void> {
    const wanted = toWantedId({ job_id: name, instance: {} });
    const jobs = [...this.#jobs].filter((job) => job.name === wanted);
    if (jobs.length > 0) return this.#cancelAll(jobs);
    if (wanted !== undefined) await this.#context.store.cancel(toRolloutId(wanted), { tombstoneMs });
  }

  /** As in the original, a second call for the same instance runs again, under its own id. */
  async #submit(submission: Omit<Submission, 'id'>, wanted: string | undefined): Promise<RolloutId> {
    const fresh = () => toRolloutId(wanted === undefined ? `r-${randomUUID()}` : `${wanted.slice(0, 80)}.${randomUUID()}`);
    for (const id of wanted === undefined ? [fresh()] : [toRolloutId(wanted), fresh()]) {
      const created = await this.#tryCreate(id, submission);
      if (created) return id;
    }
    throw new RolloutError('internal', 'a random id was already taken');
  }

  async #tryCreate(id: RolloutId, submission: Omit<Submission, 'id'>): Promise<boolean> {
    try {
      const { rollouts } = await submitAll([toNewRollout(id, submission)], this.#context);
      return rollouts[0]?.created === true;
    } catch (error) {
      if (error instanceof RolloutError && error.code === 'conflict') return false;
      throw error;
    }
  }

  async #finish({ instance }: ProcessRequest, id: RolloutId, signal: AbortSignal): Promise<ProcessReply> {
    const { store, config, draining } = this.#context;
    const { timeoutS } = config.prorl;
    const record = await waitForEnd(id, { ms: 2000 * timeoutS + graceMs, signal }, this.#context);
    if (record !== undefined && isTerminal(record.state))
      return toProcessReply(instance, record, { trajectory: await store.trajectory(id), timeoutS });
    await store.cancel(id, { tombstoneMs });
    if (!signal.aborted && !draining.aborted) throw new RolloutError('wait-timeout', 'Processing timed out');
    throw new RolloutError('not-running', `rollout ${id} was cancelled: its caller disconnected, or the service is shutting down`);
  }

  async #cancelAll(jobs: readonly Job[]): Promise<void> {
    await Promise.all(jobs.map((job) => this.#cancel(job)));
  }

  async #cancel(job: Job): Promise<void> {
    job.cancelled = true;
    if (job.id !== undefined) await this.#context.store.cancel(job.id, { tombstoneMs });
  }
}

export function mountProrl(app: FastifyInstance, context: AppContext): void {
  const server = new ProrlServer(context);
  app.register(async (scope) => {
    scope.setErrorHandler((error, request, reply) => {
      const refusal = toReplyError(error, context.log, request);
      return sendError(reply, refusal, { detail: refusal.message });
    });
    mountControl(scope, server, context);
    mount(scope, routes.prorlProcess, ({ body, reply }: RouteInput<typeof routes.prorlProcess>) =>
      server.process(body, closedSignal(reply)),
    );
    mount(scope, routes.prorlCancel, async ({ body: { job_id } }) => {
      await server.cancel(job_id);
      return { status: `Cancel requested for job ${job_id}` };
    });
  });
}

function mountControl(app: FastifyInstance, server: ProrlServer, context: AppContext): void {
  mount(app, routes.prorlStart, () => {
    server.start();
    return { status: 'Server started successfully' };
  });
  mount(app, routes.prorlStop, async () => {
    await server.stop();
    return { status: 'Server stopped successfully' };
  });
  mount(app, routes.prorlStatus, async () => {
    server.checkRunning();
    return toProrlStatus(await context.status.read(), server.pending);
  });
  mount(app, routes.prorlAddServer, async ({ body: { address } }) => ({ status: await server.addServer(address) }));
  mount(app, routes.prorlClearServers, async () => {
    await server.clearServers();
    return { status: 'Cleared all LLM server addresses' };
  });
}

async function toSubmission(request: ProcessRequest, { scenarios, config }: AppContext): Promise<Omit<Submission, 'id'>> {
  const instance = parseInstance(request.instance);
  const scenario = findScenario(instance.data_source, scenarios);
  refuseImages(instance, ['instance']);
  const settings = toSettings(request.sampling_params, config.prorl);
  const task = await check(
    z.record(z.string(), z.unknown()),
    tryTask(() => toTask(scenario, instance)),
    { at: ['instance'], code: 'task-invalid' },
  );
  await checkTask(scenario, task, ['instance']);
  return {
    scenario: scenario.name,
    task,
    sampling: await check(sampling, settings.sampling, { at: ['sampling_params'] }),
    limits: await check(limits, settings.limits, { at: ['sampling_params'] }),
  };
}

function tryTask(make: () => unknown): unknown {
  try {
    return make();
  } catch (error) {
    throw new RolloutError('task-invalid', `instance: ${messageOf(error)}`, { cause: error });
  }
}
