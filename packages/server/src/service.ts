// The one place where things are made and wired: a server, or a worker, from a configuration. Closing one closes what it made.

import { mkdir } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { sleep, systemClock } from './base/clock.ts';
import { type Log, openLog } from './base/log.ts';
import { openLoopLag } from './base/loop-lag.ts';
import { Pace } from './base/pace.ts';
import type { ServiceConfig } from './config.ts';
import { openApp } from './http/app.ts';
import { checkListen } from './http/request/auth.ts';
import { BackendPool } from './inference/pool/pool.ts';
import { Worker } from './pipeline/worker.ts';
import { BatchKeeper } from './sampling/batch-keeper.ts';
import { TaskFiles } from './sampling/task-files.ts';
import { WebhookSender } from './sampling/webhook.ts';
import { openApptainerDriver } from './sandbox/apptainer/apptainer.ts';
import { openBubblewrapDriver } from './sandbox/bubblewrap/bubblewrap.ts';
import { ImageCache } from './sandbox/images/image-cache.ts';
import { LayerCache } from './sandbox/layers/layer-cache.ts';
import { holdLayers } from './sandbox/layers/layer-holding.ts';
import type { SandboxDriver } from './sandbox/sandbox.ts';
import { openWarmPool } from './sandbox/warm/warm-pool.ts';
import { loadScenarios } from './scenario/load.ts';
import { EventTail } from './store/event-tail.ts';
import { openSqliteStore } from './store/sqlite/sqlite.ts';
import type { Store } from './store/store.ts';
import { type Conversation, openConversation } from './trajectory/conversation.ts';
import { openRemoteConversation } from './trajectory/remote-conversation.ts';

export interface RunningServer extends AsyncDisposable {
  /** Where it listens, with the port that it really got. */
  readonly url: string;
  readonly store: Store;
  /** Takes nothing in any more; reads go on until it is closed. */
  drain(): void;
}

export async function openServer(config: ServiceConfig): Promise<RunningServer> {
  checkListen(config.http);
  const log = openLog({ base: { process: 'server', pid: process.pid } });
  await using stack = new AsyncDisposableStack();
  const store = stack.use(await openStore(config, log));
  const tail = stack.use(new EventTail({ store, after: await store.lastEventId(), clock: systemClock, log }));
  const loopLag = stack.use(openLoopLag());
  const scenarios = await loadScenarios(config.scenarios);
  const taskFiles = new TaskFiles(config.sampling.taskFiles);
  const app = await openApp({ store, tail, scenarios, taskFiles, config: config.http, log, clock: systemClock, loopLag });
  stack.defer(() => app.close());
  const keeper = stack.use(new BatchKeeper({ store, scenarios, files: taskFiles, clock: systemClock, log }));
  const webhooks = stack.use(new WebhookSender({ store, clock: systemClock, log }));
  tail.subscribe((events) => {
    keeper.push(events);
    webhooks.push(events);
  });
  keeper.start();
  webhooks.start();
  const chores = new AbortController();
  const keeping = keepHouse(store, config, chores.signal);
  stack.defer(async () => {
    chores.abort();
    await keeping;
  });
  const url = await app.listen({ host: config.http.host, port: config.http.port });
  log.info('server-start', { url });
  const owned = stack.move();
  return { url, store, drain: () => app.drain(), [Symbol.asyncDispose]: () => owned[Symbol.asyncDispose]() };
}

/** What nobody asks for and must be done all the same: old rows go, and rollouts of dead workers go back. */
async function keepHouse(store: Store, { retention, pipeline }: ServiceConfig, signal: AbortSignal): Promise<void> {
  const hourMs = 3_600_000;
  for (let round = 0; !signal.aborted; round += 1) {
    try {
      await store.expire(pipeline);
      if (round % 600 === 0) await store.retain({ endedMs: retention.endedHours * hourMs, eventsMs: retention.eventsHours * hourMs });
    } catch (error) {
      openLog().error('housekeeping-failed', { error: String(error) });
    }
    await sleep(1000, { signal }).catch(() => {}); // Closing ends the pause.
  }
}

export interface RunningWorker extends AsyncDisposable {
  readonly worker: Worker;
}

export async function openWorker(config: ServiceConfig): Promise<RunningWorker> {
  const { tokenizer } = config.model;
  if (tokenizer === undefined)
    throw new Error("a worker needs --tokenizer: the folder with tokenizer.json and tokenizer_config.json, or a backend's address");
  const log = openLog({ base: { process: 'worker', pid: process.pid } });
  await using stack = new AsyncDisposableStack();
  const store = stack.use(await openStore(config, log));
  const loopLag = stack.use(openLoopLag());
  const bare = await openDriver(config, log);
  const layers = openLayers(config, bare);
  const driver = stack.use(openWarmPool(holdLayers(bare, layers), { config: config.sandbox.warm, log }));
  const conversation = await openModel(tokenizer, config);
  const pace = new Pace();
  const pool = stack.use(new BackendPool({ log, pace, placements: store, ...config.inference }));
  const scenarios = await loadScenarios(config.scenarios);
  const worker = stack.use(
    new Worker({
      store,
      driver,
      layers,
      scenarios,
      pool,
      conversation,
      model: isAddress(tokenizer) ? new URL(tokenizer).host : basename(resolve(tokenizer)),
      config: config.pipeline,
      clock: systemClock,
      pace,
      log,
      loopLag,
    }),
  );
  await worker.start();
  log.info('worker-start', { workerId: worker.id });
  const owned = stack.move();
  return { worker, [Symbol.asyncDispose]: () => owned[Symbol.asyncDispose]() };
}

function isAddress(tokenizer: string): boolean {
  return /^https?:\/\//.test(tokenizer);
}

async function openModel(tokenizer: string, { model }: ServiceConfig): Promise<Conversation> {
  const { tokenizer: _, tokenizerApiKey: apiKey, ...options } = model;
  return isAddress(tokenizer)
    ? await openRemoteConversation(tokenizer, { ...options, apiKey })
    : await openConversation(tokenizer, options);
}

async function openDriver({ run: runDir, sandbox }: ServiceConfig, log: Log): Promise<SandboxDriver> {
  if (sandbox.driver === 'bubblewrap') return openBubblewrapDriver({ runDir, config: sandbox, log });
  const images = new ImageCache({
    folder: sandbox.images,
    maxBytes: sandbox.imagesGib * 2 ** 30,
    onProgress: (progress) => log.info('image-progress', progress),
  });
  return openApptainerDriver({ runDir, config: sandbox, log, images });
}

function openLayers({ run: runDir, sandbox }: ServiceConfig, driver: SandboxDriver): LayerCache {
  return new LayerCache({ driver, runDir, maxBytes: sandbox.layersGib * 2 ** 30, salt: JSON.stringify(sandbox) });
}

async function openStore(config: ServiceConfig, log: Log): Promise<Store> {
  await mkdir(config.data, { recursive: true, mode: 0o700 });
  return await openSqliteStore({ path: join(config.data, 'millrace.db'), clock: systemClock, log });
}
