// A worker for tests: a real store, real sandboxes and a fake backend that speaks the real protocol, all in this process.

import { join } from 'node:path';
import { systemClock } from '@millrace/base/clock';
import { type Log, silentLog } from '@millrace/base/log';
import { openLoopLag } from '@millrace/base/loop-lag';
import { Pace } from '@millrace/base/pace';
import type { BackendRecord } from '@millrace/engines';
import { type Conversation, openConversation } from '@millrace/model';
import { type RolloutId, type RolloutState, rolloutId, type SubmissionInput, submission } from '@millrace/protocol';
import { CheckpointBudget, CheckpointShelf, holdLayers, LayerCache, openBubblewrapDriver, type SandboxDriver } from '@millrace/sandbox';
import { type GymConfig, loadScenarios, OutsideTools, outsideConfig, type Scenario, type SidecarOptions } from '@millrace/scenarios';
import { EventTail, openSqliteStore, type RolloutRecord, type Store } from '@millrace/store';
import {
  type FakeBackend,
  type FakeTokens,
  makeTempFolder,
  openFakeBackend,
  openFakeTokens,
  type Policy,
  qwen3Folder,
  renderCall,
} from '@millrace/testkit';
import type { z } from 'zod';
import { BackendPool } from '../../src/inference/pool/pool.ts';
import { pipelineConfig } from '../../src/pipeline/attempt/pipeline-config.ts';
import { Worker } from '../../src/pipeline/worker.ts';

export const bash = (command: string) => renderCall('bash', { command });
export const finish = (answer = '') => renderCall('finish', { answer });

/** Says these turns, then the last one again. */
export const says =
  (...turns: readonly string[]): Policy =>
  ({ turn }) => ({ text: turns[Math.min(turn, turns.length - 1)] ?? '' });

/** A submission of the shell scenario, which succeeds unless `task` changes it. */
export const shell = (id: string, task: Record<string, unknown> = {}, more: Record<string, unknown> = {}) => ({
  id,
  scenario: 'shell',
  task: { instruction: 'do it', check: 'true', ...task },
  ...more,
});

// Both take most of a second to load, so all beds of a file share them.
let conversation: Promise<Conversation> | undefined;
let tokens: Promise<FakeTokens> | undefined;

export interface BedOptions {
  readonly policy?: Policy;
  readonly pipeline?: Record<string, unknown>;
  readonly scenarios?: readonly Scenario[];
  /** Paths of scenario modules. */
  readonly scenarioFiles?: readonly string[];
  readonly gym?: GymConfig;
  readonly tools?: z.input<typeof outsideConfig>;
  /** For scenario files in Python. */
  readonly python?: SidecarOptions;
  readonly log?: Log;
  readonly latencyMs?: number;
  /** Every attempt begins again. */
  readonly withoutShelf?: true;
  /** How old an attempt is before it is saved; 0 unless set. */
  readonly restMs?: number;
  /** Replaces the driver of the sandboxes. */
  readonly driver?: (real: SandboxDriver) => SandboxDriver;
  readonly withoutBackend?: true;
  /** The folder of the store's file; the bed's own unless set. */
  readonly storeFolder?: string;
  /** Replaces methods of the store that workers use. */
  readonly wrapStore?: (real: Store) => Partial<Store>;
}

export class WorkerBed implements AsyncDisposable {
  readonly store: Store;
  readonly backend: FakeBackend;
  readonly runDir: string;
  readonly #stack: AsyncDisposableStack;
  readonly #tail: EventTail;
  readonly #openWorker: () => Promise<Worker>;

  private constructor(fields: {
    store: Store;
    backend: FakeBackend;
    runDir: string;
    stack: AsyncDisposableStack;
    tail: EventTail;
    openWorker: () => Promise<Worker>;
  }) {
    this.store = fields.store;
    this.backend = fields.backend;
    this.runDir = fields.runDir;
    this.#stack = fields.stack;
    this.#tail = fields.tail;
    this.#openWorker = fields.openWorker;
  }

  static async open(options: BedOptions = {}): Promise<WorkerBed> {
    const stack = new AsyncDisposableStack();
    const { path: folder } = stack.use(await makeTempFolder('mr'));
    const store = stack.use(
      await openSqliteStore({ path: join(options.storeFolder ?? folder, 'millrace.db'), clock: systemClock, log: silentLog }),
    );
    tokens ??= openFakeTokens();
    const { policy = says(finish()), latencyMs = 0 } = options;
    const backend = stack.use(await openFakeBackend({ policy, latencyMs, tokens: await tokens }));
    if (!options.withoutBackend) await store.joinBackend(toRecord(backend.url));
    const tail = stack.use(new EventTail({ store, after: 0, clock: systemClock, log: silentLog }));
    const runDir = join(folder, 'run');
    const real = await openBubblewrapDriver({ runDir, log: silentLog });
    const driver = options.driver?.(real) ?? real;
    conversation ??= openConversation(qwen3Folder());
    const shared = {
      store: options.wrapStore ? { ...methodsOf(store), ...options.wrapStore(store) } : store,
      conversation: await conversation,
      model: 'qwen3',
      clock: systemClock,
      pace: new Pace(),
      log: options.log ?? silentLog,
    };
    const config = pipelineConfig.parse({ handBackMs: 0, retryDelayMs: 0, ...options.pipeline });
    const tools = outsideConfig.parse(options.tools ?? {});
    const outside = stack.use(new OutsideTools(tools));
    const loaded = await loadScenarios(options.scenarioFiles ?? [], {
      python: { log: shared.log, ...options.python },
      tools,
      ...(options.gym && { gym: options.gym }),
    });
    const scenarios = {
      ...loaded,
      get: (name: string) => options.scenarios?.find((own) => own.name === name) ?? loaded.get(name),
    };
    const openWorker = async () => {
      const layers = new LayerCache({ driver, runDir, maxBytes: 2 ** 30 });
      const worker = new Worker({
        ...shared,
        driver: holdLayers(driver, layers),
        layers,
        config,
        scenarios,
        outside,
        pool: stack.use(new BackendPool({ placements: store, log: shared.log, pace: shared.pace })),
        loopLag: stack.use(openLoopLag()),
        ...(options.withoutShelf ? {} : { shelf: new CheckpointShelf({ runDir, maxBytes: 2 ** 30 }) }),
        restMs: options.restMs ?? 0,
        budget: new CheckpointBudget(systemClock, { ofSandbox: 1 / 20, ofCore: 1 }),
      });
      await worker.start();
      return worker;
    };
    return new WorkerBed({ store, backend, runDir, stack, tail, openWorker });
  }

  /** The test may close the worker; otherwise the bed does. */
  async startWorker(): Promise<Worker> {
    return this.#stack.use(await this.#openWorker());
  }

  async submit(input: SubmissionInput): Promise<RolloutId> {
    const [id] = await this.submitAll(input);
    return id;
  }

  async submitAll<Inputs extends readonly SubmissionInput[]>(...inputs: Inputs): Promise<{ [Index in keyof Inputs]: RolloutId }> {
    const rollouts = inputs.map((input) => ({
      id: rolloutId.parse(input.id),
      submission: submission.parse(input),
      digest: JSON.stringify(input),
    }));
    await this.store.submit(rollouts, { maxQueued: 100_000 });
    return rollouts.map(({ id }) => id) as { [Index in keyof Inputs]: RolloutId };
  }

  /** Resolves when the rollout is in one of these states. It misses a state only if the rollout left it before the call. */
  async reach(id: RolloutId, ...states: readonly RolloutState[]): Promise<RolloutRecord> {
    const changed = { resolve: () => {} };
    const stop = this.#tail.subscribe(() => changed.resolve());
    try {
      for (;;) {
        const next = new Promise<void>((resolve) => Object.assign(changed, { resolve }));
        const record = await this.store.get(id);
        if (record && states.includes(record.state)) return record;
        if (record && ['done', 'failed', 'cancelled'].includes(record.state)) {
          throw new Error(`${id} ended as ${record.state} ${JSON.stringify(record.failure)}, not ${states.join(' or ')}`);
        }
        await next;
      }
    } finally {
      stop();
    }
  }

  ended(id: RolloutId): Promise<RolloutRecord> {
    return this.reach(id, 'done', 'failed', 'cancelled');
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#stack.disposeAsync();
  }
}

/** The store's methods as own properties, so that a test can replace some of them. */
function methodsOf(store: Store): Store {
  return { ...store, [Symbol.asyncDispose]: () => store[Symbol.asyncDispose]() };
}

export function toRecord(url: string): BackendRecord {
  return { id: 'fake' as BackendRecord['id'], url, dialect: 'vllm', policyVersion: 7, state: 'up' };
}
