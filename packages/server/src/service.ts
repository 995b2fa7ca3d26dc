// The one place where things are made and wired: a server, or a worker, from a configuration. Closing one closes what it made.

import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { basename, resolve } from 'node:path';
import { systemClock } from '@millrace/base/clock';
import type { Log } from '@millrace/base/log';
import { openLoopLag } from '@millrace/base/loop-lag';
import { readMachine } from '@millrace/base/machine';
import { Pace } from '@millrace/base/pace';
import { readVersion } from '@millrace/base/version';
import { type Conversation, isAddress, openModel } from '@millrace/model';
import { definedOf, type MachineReport, messageOf } from '@millrace/protocol';
import {
  CheckpointShelf,
  findMissingImage,
  HarnessShelf,
  holdLayers,
  ImageCache,
  LayerCache,
  listHarnesses,
  openApptainerDriver,
  openBubblewrapDriver,
  openWarmPool,
  type SandboxDriver,
  toSandboxMeans,
} from '@millrace/sandbox';
import { type BuiltInOptions, loadScenarios, OutsideTools, readPrompts, type Scenarios } from '@millrace/scenarios';
import { EventTail, isPostgresAddress, Leadership, type Store, toStoreAddress } from '@millrace/store';
import { openTracing } from '@millrace/tracing';
import { BackendPool, GatewayHost, probeNewServer, sampleTokenizer, Worker } from '@millrace/worker';
import { BatchKeeper } from './batches/batch-keeper.ts';
import { TaskFiles } from './batches/task-files.ts';
import { WebhookSender } from './batches/webhook.ts';
import { WebhookTargets } from './batches/webhook-target.ts';
import type { ServiceConfig } from './config.ts';
import { runHousekeeping } from './housekeeping.ts';
import type { AppOptions } from './http/app.ts';
import { openMetrics } from './http/metrics/metrics.ts';
import { checkListen } from './http/request/auth.ts';
import { openServiceStore, openWorkerStore } from './open-stores.ts';
import type { OpenedModel } from './worker-channel.ts';
import { toWorkerSettings } from './worker-settings.ts';

/** Starting again will not help: a file, a setting or a program is wrong. The message says which. */
export class StartError extends Error {}

interface RunningServer extends AsyncDisposable {
  readonly store: Store;
  /** Answers requests from here on. Returns the address, with the port that it really got. */
  listen(): Promise<string>;
  /** From here on the tokenizer of a backend that joins is compared with the workers', and what to know about the model is logged once. */
  useModel(model: OpenedModel): void;
  /** Requests need these keys from now on. */
  useKeys(keys: ServiceConfig['http']): void;
  /** Accepts nothing new; reads go on until it is closed. */
  drain(): void;
}

interface ProcessOptions {
  readonly log: Log;
  /** Those of the configuration where it is absent. */
  readonly scenarios?: Scenarios;
  /** For a worker: in its ids. Made at its start where it is absent. */
  readonly launch?: string;
  /** For a worker that reaches the store through servers: its key of the service. */
  readonly key?: string | undefined;
}

export async function openServer(config: ServiceConfig, options: ProcessOptions): Promise<RunningServer> {
  checkListen(config.http);
  const { log } = options;
  await using stack = new AsyncDisposableStack();
  const metrics = openMetrics();
  const store = stack.use(await openServiceStore(config, { log, observer: metrics.store }));
  const tail = stack.use(new EventTail({ store, after: await store.lastEventId(), clock: systemClock, log }));
  const loopLag = stack.use(openLoopLag());
  const scenarios = options.scenarios ?? (await loadScenarios(config.scenarios, toBuiltIn(config, log)));
  const taskFiles = new TaskFiles(config.sampling.taskFiles);
  const { signal } = stack.adopt(new AbortController(), (closed) => closed.abort());
  let model: OpenedModel | undefined;
  const toOptions = async () => ({ tokenizer: model?.tokenizer, isPaused: (await store.policy()).state !== 'running' });
  const probe: AppOptions['probe'] = async (backend) =>
    await probeNewServer(backend, { clock: systemClock, signal, ...(await toOptions()) });
  const server = toServerId(config);
  const leadership = stack.use(new Leadership({ store, server, clock: systemClock, log }));
  await leadership.start();
  const { openApp } = await import('./http/app.ts'); // a worker loads no HTTP server
  const app = await openApp({
    ...{ store, tail, scenarios, taskFiles, log, loopLag, probe, server, leadership, metrics },
    ...{ config: config.http, clock: systemClock },
    sandboxes: describeSandboxes(config),
    workerSettings: (wire) => toWorkerSettings(config, wire),
    tokenizer: config.model.tokenizer,
  });
  stack.defer(() => app.close());
  const keeper = stack.use(new BatchKeeper({ store, scenarios, files: taskFiles, clock: systemClock, log }));
  const targets = new WebhookTargets(config.http.webhookHosts);
  const webhooks = stack.use(new WebhookSender({ store, clock: systemClock, log, targets }));
  tail.subscribe((events) => {
    keeper.push(events);
    webhooks.push(events);
  });
  for (const one of [keeper, webhooks]) one.start();
  const closing = new AbortController();
  const housekeeping = runHousekeeping(store, { config, log, leadership, signal: closing.signal, onLock: (ms) => app.noteRetention(ms) });
  stack.defer(async () => {
    closing.abort();
    await housekeeping;
  });
  const owned = stack.move();
  return {
    store,
    async listen() {
      const url = await app.listen({ host: config.http.host, port: config.http.port });
      log.info('server-start', { url });
      return url;
    },
    useModel(opened) {
      const logged = model?.warnings ?? [];
      for (const warning of opened.warnings) if (!logged.includes(warning)) log.warn('model-warning', { warning });
      model = opened;
    },
    useKeys: (keys) => app.useKeys(keys),
    drain: () => app.drain(),
    [Symbol.asyncDispose]: () => owned[Symbol.asyncDispose](),
  };
}

/** Of this server among those that share its store, also after a restart. */
function toServerId({ machine, http }: ServiceConfig): string {
  return `${readMachine(machine.name).id}/${http.host}:${http.port === 0 ? randomUUID() : http.port}`;
}

function toBuiltIn({ http, judge, gym, tools }: ServiceConfig, log: Log): BuiltInOptions {
  return { ...http.prorl, judge, gym, tools, python: { log } };
}

export interface RunningWorker extends AsyncDisposable {
  readonly worker: Worker;
  readonly model: OpenedModel;
}

/** Throws a StartError when starting it again would fail in the same way. */
export async function openWorker(config: ServiceConfig, options: ProcessOptions): Promise<RunningWorker> {
  const { log } = options;
  await using stack = new AsyncDisposableStack();
  const store = stack.use(await openWorkerStore(config, options));
  const loopLag = stack.use(openLoopLag());
  const bare = await orStartError(() => openDriver(config, log));
  const layers = openLayers(config, bare);
  const driver = stack.use(openWarmPool(holdLayers(bare, layers), { config: config.sandbox.warm, log }));
  const conversation = await openWorkerModel(config);
  const pace = new Pace();
  const model = { tokenizer: await sampleTokenizer(conversation, pace), warnings: [...conversation.warnings] };
  const pool = stack.use(
    new BackendPool({ log, pace, placements: store, machine: hostname(), ...config.inference, tokenizer: model.tokenizer }),
  );
  const scenarios = options.scenarios ?? (await orStartError(() => loadScenarios(config.scenarios, toBuiltIn(config, log))));
  const outside = stack.use(await orStartError(async () => new OutsideTools(config.tools)));
  const gateways = stack.use(await GatewayHost.open({ host: config.pipeline.gatewayHost, clock: systemClock, log }));
  const tracing = await openWorkerTracing(config, options);
  if (tracing) stack.use(tracing);
  const { prompts } = config;
  const texts = prompts === undefined ? undefined : await orStartError(async () => readPrompts(prompts));
  const worker = stack.use(
    new Worker({
      store,
      driver,
      layers,
      scenarios,
      pool,
      conversation,
      model: toModelName(config.model.tokenizer),
      config: config.pipeline,
      ...openShelf(config),
      clock: systemClock,
      pace,
      log,
      loopLag,
      machine: { ...toMachineReport(config, scenarios), version: await readVersion() },
      outside,
      gateways,
      harnesses: new HarnessShelf(config.run, config.harnesses),
      ...definedOf({ prompts: texts, launch: options.launch, tracing }),
    }),
  );
  await worker.start();
  log.info('worker-start', { workerId: worker.id });
  const owned = stack.move();
  return { worker, model, [Symbol.asyncDispose]: () => owned[Symbol.asyncDispose]() };
}

/** Undefined if no rollout is traced. */
async function openWorkerTracing({ tracing: { url, share, headers }, machine }: ServiceConfig, { launch }: ProcessOptions) {
  if (url === undefined || share === 0) return undefined;
  const attributes = {
    'service.name': 'millrace',
    'service.instance.id': launch,
    'host.name': machine.name ?? hostname(),
    'rl.system': 'millrace',
  };
  return await openTracing({ url, share, headers, attributes });
}

function toMachineReport({ machine, sandbox }: ServiceConfig, scenarios: Scenarios): MachineReport {
  const { id, name, cpus, memoryBytes } = readMachine(machine.name);
  return {
    id,
    name,
    cpus,
    memory_bytes: memoryBytes,
    labels: machine.labels,
    scenarios: [...scenarios.names()],
    sandboxes: toSandboxMeans(sandbox),
  };
}

/** A backend that does not answer now may answer later; a folder stays as it is. */
async function openWorkerModel({ model }: ServiceConfig): Promise<Conversation> {
  const isRemote = model.tokenizer !== undefined && isAddress(model.tokenizer);
  return isRemote ? await openModel(model) : await orStartError(() => openModel(model));
}

function toModelName(tokenizer = ''): string {
  return isAddress(tokenizer) ? new URL(tokenizer).host : basename(resolve(tokenizer));
}

async function orStartError<T>(open: () => Promise<T>): Promise<T> {
  try {
    return await open();
  } catch (error) {
    throw new StartError(messageOf(error), { cause: error });
  }
}

/** The sandboxes that the configuration asks for. */
export async function openDriver({ run: runDir, sandbox }: ServiceConfig, log: Log): Promise<SandboxDriver> {
  if (sandbox.driver === 'bubblewrap') return openBubblewrapDriver({ runDir, config: sandbox, log });
  const images = new ImageCache({
    folder: sandbox.images,
    names: sandbox.imageNames,
    maxBytes: sandbox.imagesGib * 2 ** 30,
    onProgress: (progress) => log.info('image-progress', progress),
  });
  return openApptainerDriver({ runDir, config: sandbox, log, images });
}

function describeSandboxes(config: ServiceConfig): AppOptions['sandboxes'] {
  const harnesses = listHarnesses(config.harnesses).map(({ name }) => name);
  return { means: toSandboxMeans(config.sandbox), harnesses, findMissingImage: openImageCheck(config) };
}

/** Machines that share a store may have images that this one does not have. */
function openImageCheck(config: ServiceConfig): AppOptions['sandboxes']['findMissingImage'] {
  const isAlone = !isPostgresAddress(toStoreAddress(config));
  return async (name) => (name === undefined || !isAlone ? undefined : await findMissingImage(name));
}

function openShelf({ run: runDir, pipeline: { checkpointsGib, checkpointsFolder: shared } }: ServiceConfig): { shelf?: CheckpointShelf } {
  return checkpointsGib === 0
    ? {}
    : { shelf: new CheckpointShelf({ runDir, maxBytes: checkpointsGib * 2 ** 30, ...definedOf({ shared }) }) };
}

export function openLayers({ run: runDir, sandbox }: ServiceConfig, driver: SandboxDriver): LayerCache {
  return new LayerCache({ driver, runDir, maxBytes: sandbox.layersGib * 2 ** 30, salt: JSON.stringify(sandbox) });
}
