// Workers on a machine that joins a running service: they take its settings from it, with this machine's own configuration on top, and reach
// its store through its servers. A service of a version before that gives them the address of its store instead.

import type { Log } from '@millrace/base/log';
import { readMachine } from '@millrace/base/machine';
import { type Client, openClient } from '@millrace/client';
import { definedOf, RolloutError, type WorkerSettings } from '@millrace/protocol';
import { findCgroups } from '@millrace/sandbox';
import { openWorkerStore, readConfig, type ServiceConfig, StartError, Supervisor } from '@millrace/server';
import { workerWire } from '@millrace/store';

interface JoinOptions {
  /** Servers of the service: the first that answers gives the settings. */
  readonly servers: readonly string[];
  readonly key?: string;
  /** This machine's own configuration file. */
  readonly path?: string;
  /** By dotted name. */
  readonly overrides?: Readonly<Record<string, unknown>>;
  /** How long to wait for a service that does not answer. Ten minutes by default. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

/** Throws a StartError if workers of this machine cannot reach the store. */
export async function joinService({ servers, key, path, overrides, timeoutMs = 600_000, signal }: JoinOptions): Promise<ServiceConfig> {
  const { url, settings } = await readSettings({ servers, timeoutMs, ...definedOf({ key, signal }) });
  const { config: base, local_store } = settings;
  if (settings.wire !== undefined) return readConfig(path, { ...overrides, 'store.servers': servers }, base);
  const config = readConfig(path, overrides, base);
  const { id, name } = readMachine(undefined, {}); // the host itself, whatever its name in Slurm
  if (local_store !== null && local_store.machine_id !== id)
    throw new StartError(
      `the service at ${url} keeps its store in a file on ${local_store.machine}, and this is ${name}: start the service with --store postgres://…, which all machines reach`,
    );
  return config;
}

interface Settings {
  readonly url: string;
  readonly settings: WorkerSettings;
}

/** From the server that answers first, while it waits for those that do not. */
async function readSettings({ servers, key, timeoutMs, signal }: Omit<JoinOptions, 'path' | 'overrides'>): Promise<Settings> {
  const over = new AbortController();
  const asked = servers.map(async (url): Promise<Settings> => {
    await using client = openClient({ url, ...definedOf({ key, timeoutMs }) });
    const stop = AbortSignal.any([over.signal, ...(signal ? [signal] : [])]);
    return { url, settings: await askSettings(client, stop) };
  });
  try {
    return await Promise.any(asked);
  } catch (error) {
    throw error instanceof AggregateError ? error.errors[0] : error;
  } finally {
    over.abort();
  }
}

/** A server of the version before knows no wire. */
async function askSettings(client: Client, signal: AbortSignal): Promise<WorkerSettings> {
  try {
    return await client.workerSettings({ wire: workerWire, signal });
  } catch (error) {
    if (!(error instanceof RolloutError) || error.code !== 'bad-request') throw error;
    return await client.workerSettings({ signal });
  }
}

interface JoinedOptions {
  readonly count: number;
  readonly key?: string | undefined;
  readonly log: Log;
  /** Aborted: finish what runs, hand back the rest, leave. */
  readonly stop: AbortSignal;
  /** Aborted: hand back everything now. */
  readonly urged: AbortSignal;
  readonly onReady?: () => void;
}

/** Runs worker processes until `stop`. Throws a StartError if none can start. */
export async function runJoinedWorkers(config: ServiceConfig, { count, key, log, stop, urged, onReady }: JoinedOptions): Promise<void> {
  await findCgroups({ enter: true }); // before there are workers, which inherit the place
  await using store = await openWorkerStore(config, { log, key }, 'none'); // it only removes workers that died
  await using workers = new Supervisor({ count, config, key, store, log, logFormat: 'json' });
  const stopped = new Promise<void>((resolve) => {
    if (stop.aborted) resolve();
    stop.addEventListener('abort', () => resolve(), { once: true });
  });
  urged.addEventListener('abort', () => workers.handBackNow(), { once: true });
  await Promise.race([workers.started.then(onReady), stopped]);
  const failed = await Promise.race([stopped, workers.failed]);
  workers.drain();
  if (urged.aborted) workers.handBackNow();
  await workers[Symbol.asyncDispose]();
  if (failed !== undefined) throw new StartError(`no worker can start any more: ${failed}`);
}
