// ProRL Agent's seven routes, so that its unchanged clients work. They are a thin layer: each request becomes an ordinary rollout,
// durable and listed like any other. What they remember is in the store, so it holds for all servers.

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
import type { Scenario } from '@millrace/scenarios';
import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { type AppContext, closedSignal, tombstoneMs } from '../context/context.ts';
import { checkIntake, readTask, toRolloutId } from '../intake/intake.ts';
import { refuseImages } from '../intake/refuse-images.ts';
import { refuseSandbox } from '../intake/refuse-sandbox.ts';
import { check } from '../request/check.ts';
import { sendError, toReplyError } from '../request/errors.ts';
import { mount, type RouteInput } from '../request/mount.ts';
import { waitForEnd } from '../routes/rollout-routes.ts';
import { addServer } from './add-server.ts';
import { ProrlJobs } from './prorl-jobs.ts';
import { toProcessReply, toProrlStatus, toTask, toWantedId } from './prorl-mapping.ts';
import { parseInstance, toSettings } from './prorl-params.ts';
import { findScenarios } from './prorl-registry.ts';

/** How long after a clear /process accepts jobs without a backend: trainers replace servers by clearing and adding. */
const swapMs = 60_000;
/** What a job may take in all, waiting included, is twice its time and this. */
const graceMs = 10_000;

class ProrlServer {
  readonly #context: AppContext;
  readonly #jobs: ProrlJobs;
  /** This server was started since it was last stopped. */
  #wasStarted = false;

  constructor(context: AppContext) {
    this.#context = context;
    this.#jobs = new ProrlJobs(context);
  }

  /** For all servers of the store. A client that starts each of them, or one that was restarted, is right. */
  async start(): Promise<void> {
    if (this.#wasStarted && (await this.#isRunning())) throw new RolloutError('bad-request', 'Server is already running');
    await this.#context.store.noteProrl('start');
    this.#wasStarted = true;
  }

  async stop(): Promise<void> {
    await this.checkRunning();
    const { store } = this.#context;
    await store.noteProrl('stop');
    this.#wasStarted = false;
    await this.#cancelAll(await store.prorlJobs());
  }

  async checkRunning(): Promise<void> {
    if (!(await this.#isRunning())) throw new RolloutError('not-running', 'Server is not running. Please start the server first.');
  }

  /** Calls that wait for an answer of any server. */
  async countPending(): Promise<number> {
    return (await this.#context.store.prorlJobs()).filter(({ isLive }) => isLive).length;
  }

  async process(request: ProcessRequest, signal: AbortSignal): Promise<ProcessReply> {
    await this.checkRunning();
    checkIntake(this.#context);
    const submission = await toSubmission(request, this.#context);
    await this.#needBackend();
    const id = await this.#jobs.open(submission, toWantedId(request), signal);
    try {
      return await this.#finish(request, id, signal);
    } finally {
      await this.#jobs.close(id);
    }
  }

  async clearServers(): Promise<void> {
    const { store } = this.#context;
    await store.clearBackends();
    await store.noteProrl('clear');
  }

  async #isRunning(): Promise<boolean> {
    return (await this.#context.store.prorlState()).isRunning;
  }

  /** Right after a clear, rollouts are accepted and wait for the server that is added next. */
  async #needBackend(): Promise<void> {
    const { store } = this.#context;
    if ((await store.backends()).length > 0) return;
    const { clearedAgoMs = swapMs } = await store.prorlState();
    if (clearedAgoMs < swapMs) return;
    const message = 'No LLM server addresses configured. Please add at least one LLM server address.';
    throw new RolloutError('not-running', message);
  }

  /** Works even before the job arrives. */
  async cancel(name: string): Promise<void> {
    const wanted = toWantedId({ job_id: name, instance: {} });
    if (wanted === undefined) return;
    const { store } = this.#context;
    const jobs = await store.prorlJobs(wanted);
    await this.#cancelAll(jobs.length > 0 ? jobs : [{ rollout: toRolloutId(wanted) }]);
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

  async #cancelAll(jobs: readonly { readonly rollout: RolloutId }[]): Promise<void> {
    await Promise.all(jobs.map(({ rollout }) => this.#context.store.cancel(rollout, { tombstoneMs })));
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
  mount(app, routes.prorlStart, async () => {
    await server.start();
    return { status: 'Server started successfully' };
  });
  mount(app, routes.prorlStop, async () => {
    await server.stop();
    return { status: 'Server stopped successfully' };
  });
  mount(app, routes.prorlStatus, async () => {
    await server.checkRunning();
    return toProrlStatus(await context.status.read(), await server.countPending());
  });
  mount(app, routes.prorlAddServer, async ({ body: { address } }) => ({ status: await addServer(address, context) }));
  mount(app, routes.prorlClearServers, async () => {
    await server.clearServers();
    return { status: 'Cleared all LLM server addresses' };
  });
}

async function toSubmission(request: ProcessRequest, context: AppContext): Promise<Omit<Submission, 'id'>> {
  const { scenarios, config } = context;
  const instance = parseInstance(request.instance);
  const candidates = findScenarios(instance.data_source, scenarios);
  refuseImages(instance, ['instance']);
  const settings = toSettings(request.sampling_params, config.prorl);
  const { scenario, task, parsed } = await chooseTask(candidates, instance);
  await refuseSandbox({ scenario, sent: task, task: parsed, at: ['instance'] }, context);
  return {
    scenario: scenario.name,
    task,
    sampling: await check(sampling, settings.sampling, { at: ['sampling_params'] }),
    limits: await check(limits, settings.limits, { at: ['sampling_params'] }),
  };
}

/** By the first scenario that can read the instance. Throws what the best of them said. */
async function chooseTask([first, ...others]: readonly [Scenario, ...Scenario[]], instance: ProcessRequest['instance']) {
  const read = async (scenario: Scenario) => {
    const at = { at: ['instance'], code: 'task-invalid' } as const;
    const made = tryTask(() => toTask(scenario, instance));
    const task = await check(z.record(z.string(), z.unknown()), made, at);
    return { scenario, task, parsed: await readTask({ scenario, task, at: ['instance'] }) };
  };
  try {
    return await read(first);
  } catch (error) {
    for (const other of others) {
      const found = await read(other).catch(() => undefined); // it cannot read the instance either
      if (found) return found;
    }
    throw error;
  }
}

function tryTask(make: () => unknown): unknown {
  try {
    return make();
  } catch (error) {
    throw new RolloutError('task-invalid', `instance: ${messageOf(error)}`, { cause: error });
  }
}
