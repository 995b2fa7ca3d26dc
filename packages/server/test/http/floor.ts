// The HTTP floor for tests: a real store in a temporary file, a real tail, two small scenarios, and a worker controlled by the test.

import assert from 'node:assert/strict';

import { join } from 'node:path';
import { after, before } from 'node:test';
import { type Clock, systemClock } from '@millrace/base/clock';
import { type Log, silentLog } from '@millrace/base/log';
import {
  definedOf,
  type ErrorBody,
  type Event,
  type Failure,
  type RolloutId,
  type RolloutResult,
  rolloutId,
  type Trajectory,
  type WorkerReport,
  workerId,
} from '@millrace/protocol';
import { findMissingImage, sandboxConfig, toSandboxMeans } from '@millrace/sandbox';
import type { Scenario, Scenarios } from '@millrace/scenarios';
import { type ClaimedRollout, type DiskLimits, type Ending, EventTail, openSqliteStore, type Store, unlimitedDisk } from '@millrace/store';
import { makeTempFolder } from '@millrace/testkit';
import { z } from 'zod';
import { TaskFiles } from '../../src/batches/task-files.ts';
import { type App, type AppOptions, openApp } from '../../src/http/app.ts';
import { httpConfig } from '../../src/http/request/http-config.ts';

const never = () => Promise.reject(new Error('no test runs a scenario'));

const sums: Scenario = {
  name: 'sums',
  aliases: ['deepscaler'],
  task: z.strictObject({ question: z.string(), answer: z.string(), hints: z.array(z.strictObject({ text: z.string() })).optional() }),
  init: never,
  evaluate: never,
};

const free: Scenario = {
  name: 'free',
  aliases: ['swebench'],
  task: z.record(z.string(), z.unknown()),
  fromInstance: ({ broken, ...instance }) => {
    if (broken) throw new Error('this instance cannot be read');
    return { instance };
  },
  init: never,
  evaluate: never,
};

export const task = { question: '1 + 1', answer: '2' };

export interface Floor extends AsyncDisposable {
  readonly app: App;
  readonly store: Store;
  readonly worker: HandWorker;
  /** Sends JSON and reads JSON. */
  call(method: 'GET' | 'POST' | 'DELETE', url: string, body?: unknown): Promise<FloorReply>;
  /** Submits one rollout and returns its id. */
  submit(fields?: Record<string, unknown>): Promise<RolloutId>;
  /** Listens on a free loopback port and returns the URL. */
  listen(): Promise<string>;
}

interface FloorReply {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: tests assert what they read
  readonly body: any;
  readonly headers: Record<string, unknown>;
}

interface FloorOptions {
  readonly config?: Partial<z.input<typeof httpConfig>>;
  readonly clock?: Clock;
  /** By default every server works and says nothing about itself. */
  readonly probe?: AppOptions['probe'];
  readonly log?: Log;
  readonly limits?: DiskLimits;
  /** Wraps the real store before the app gets it. */
  wrap?(store: Store): Store;
  /** The store of another floor, as a second server on it; the caller closes it. */
  readonly shared?: Store;
  readonly server?: string;
  readonly isLeader?: boolean;
  readonly taskFiles?: Readonly<Record<string, string>>;
  /** In place of the two small ones. */
  readonly scenarios?: Scenarios;
  /** The `sandbox` part of the configuration. */
  readonly sandbox?: z.input<typeof sandboxConfig>;
}

export async function openFloor({
  config = {},
  clock = systemClock,
  probe = async () => ({}),
  log = silentLog,
  limits = unlimitedDisk,
  wrap = (store) => store,
  shared,
  server = 'server',
  isLeader = true,
  taskFiles = {},
  scenarios,
  sandbox = {},
}: FloorOptions = {}): Promise<Floor> {
  const folder = await makeTempFolder('millrace-http');
  const store = shared ?? (await openSqliteStore({ path: join(folder.path, 'store.sqlite'), clock, limits, log: silentLog }));
  const tail = new EventTail({ store, after: await store.lastEventId(), clock: systemClock, log: silentLog });
  const byName = new Map([sums, free].flatMap((one) => [one.name, ...(one.aliases ?? [])].map((name) => [name, one] as const)));
  const app = await openApp({
    store: wrap(store),
    tail,
    scenarios: scenarios ?? { get: (name) => byName.get(name), names: () => ['sums', 'free'] },
    taskFiles: new TaskFiles(taskFiles),
    config: httpConfig.parse(config),
    log,
    clock,
    probe,
    sandboxes: {
      means: toSandboxMeans(sandboxConfig.parse(sandbox)),
      harnesses: ['codex'],
      findMissingImage: async (name) => name && findMissingImage(name),
    },
    workerSettings: () => ({ config: { data: '/data' }, local_store: null }),
    loopLag: { read: () => ({ p50: 0, p99: 1, max: 2 }) },
    server,
    leadership: { isLeader },
  });
  const call: Floor['call'] = async (method, url, body) => {
    const reply = await app.inject(definedOf({ method, url, payload: body as object | undefined }));
    return { status: reply.statusCode, body: reply.body === '' ? undefined : parseBody(reply.body), headers: reply.headers };
  };
  return {
    app,
    store,
    worker: new HandWorker(store),
    call,
    async submit(fields = {}) {
      const reply = await call('POST', '/v1/rollouts', { rollouts: [{ scenario: 'sums', task, ...fields }] });
      if (reply.status !== 200) throw new Error(JSON.stringify(reply.body));
      return reply.body.rollouts[0].id;
    },
    listen: () => app.listen({ host: '127.0.0.1', port: 0 }),
    async [Symbol.asyncDispose]() {
      await app.close();
      await tail[Symbol.asyncDispose]();
      if (!shared) await store[Symbol.asyncDispose]();
      await folder[Symbol.asyncDispose]();
    },
  };
}

/** One floor with a worker, shared by all tests of a file that use their own ids. */
export function shareFloor(): () => Floor {
  let shared: Floor | undefined;
  before(async () => {
    shared = await openFloor();
    await shared.worker.register();
  });
  after(() => shared?.[Symbol.asyncDispose]());
  return () => shared ?? assert.fail('no floor before the first test');
}

function parseBody(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Longer than a file of tests takes on a busy machine. */
const leaseMs = 3_600_000;

/** Moves rollouts along as a worker does. */
export class HandWorker {
  readonly id = workerId.parse('w-1');
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  async register(): Promise<void> {
    await this.#store.registerWorker({ id: this.id, host: 'here', pid: 1 }, { leaseMs });
  }

  async report(report: Partial<WorkerReport> = {}): Promise<readonly RolloutId[]> {
    const { cancelled } = await this.#store.renew(this.id, { leaseMs, report: { ...emptyReport, ...report } });
    return cancelled;
  }

  /** Claims the oldest queued rollout, or the one with this id together with all before it. */
  async claim(id?: RolloutId): Promise<ClaimedRollout> {
    for (;;) {
      const [claimed] = await this.#store.claim(this.id, 1);
      if (claimed === undefined) throw new Error('it is not queued');
      if (id === undefined || claimed.id === id) return claimed;
    }
  }

  async finish(claim: ClaimedRollout, ending: Ending): Promise<void> {
    if (ending.state === 'done') for (const to of ['ready', 'run', 'evaluate'] as const) await this.#store.move(claim, to);
    if (!(await this.#store.finish(claim, ending))) throw new Error('fenced');
  }

  async succeed(id: RolloutId, reward = 1): Promise<void> {
    await this.finish(await this.claim(id), { state: 'done', result: makeResult({ reward }), trajectory: makeTrajectory(id) });
  }
}

const idleStage = { active: 0, waiting: 0, slots: 4 };

const emptyReport: WorkerReport = {
  stages: { init: idleStage, ready: idleStage, run: idleStage, evaluate: idleStage },
  held: 0,
  backends: {},
  turns: 0,
  sampled_tokens: 0,
  loop_lag_ms: { p50: 0, p99: 0, max: 0 },
  rss_bytes: 1,
};

export function makeResult(fields: Partial<RolloutResult> = {}): RolloutResult {
  return {
    reward: 1,
    score: { given: '2' },
    stop_reason: 'completed',
    turns: 2,
    tokens: { prompt: 3, sampled: 4, observation: 2 },
    malformed_calls: 0,
    policy_versions: { first: 1, last: 2 },
    backends: [],
    timings: {
      queued_ms: 500,
      init_ms: 1000,
      ready_ms: 250,
      run_ms: 2000,
      cache_wait_ms: 0,
      evaluate_wait_ms: 250,
      evaluate_ms: 3000,
      model_ms: 1500,
      tool_ms: 400,
    },
    ...fields,
  };
}

export function makeFailure(fields: Partial<Failure> = {}): Failure {
  return { code: 'sandbox-died', message: 'it is gone', blame: 'sandbox', retryable: true, stage: 'run', attempt: 1, ...fields };
}

/** Two turns with a tool call between them. */
export function makeTrajectory(id: string): Trajectory {
  const call = { id: 'call-1', name: 'bash', arguments: { command: 'ls' } };
  const none = new Float32Array();
  return {
    rolloutId: id,
    attempt: 1,
    model: 'tiny',
    tools: [{ name: 'bash', description: 'Runs a command.', parameters: { type: 'object' } }],
    segments: [
      {
        kind: 'prompt',
        turn: 0,
        text: 'hello',
        messages: [{ role: 'user', content: 'hello' }],
        tokenIds: Int32Array.of(1, 2, 3),
        logprobs: none,
      },
      {
        kind: 'sampled',
        turn: 1,
        text: 'look <call>',
        messages: [{ role: 'assistant', content: 'look', tool_calls: [call] }],
        finish_reason: 'stop',
        policy_versions: { first: 1, last: 1 },
        tokenIds: Int32Array.of(4, 5),
        logprobs: Float32Array.of(-0.5, -0.25),
      },
      {
        kind: 'observation',
        turn: 1,
        text: 'file',
        messages: [{ role: 'tool', content: 'file', tool_call_id: 'call-1', name: 'bash' }],
        tokenIds: Int32Array.of(6, 7),
        logprobs: none,
      },
      {
        kind: 'sampled',
        turn: 2,
        text: 'done',
        messages: [],
        finish_reason: 'stop',
        policy_versions: { first: 2, last: 2 },
        tokenIds: Int32Array.of(8, 9),
        logprobs: Float32Array.of(-1, -2),
      },
    ],
  };
}

export function toId(text: string): RolloutId {
  return rolloutId.parse(text);
}

export function errorOf(reply: { readonly body: unknown }): ErrorBody['error'] {
  return (reply.body as ErrorBody).error;
}

/** Reads server-sent events until `enough` returns true. */
export async function readEvents(stream: AsyncIterable<Uint8Array>, enough: (events: readonly Event[]) => boolean): Promise<Event[]> {
  const events: Event[] = [];
  let text = '';
  for await (const chunk of stream) {
    text += Buffer.from(chunk).toString();
    const frames = text.split('\n\n');
    text = frames.pop() ?? '';
    for (const frame of frames) {
      const data = frame.split('\n').find((line) => line.startsWith('data: '));
      if (data !== undefined) events.push(JSON.parse(data.slice(6)));
    }
    if (enough(events)) return events;
  }
  return events;
}
