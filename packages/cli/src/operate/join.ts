// Workers on a machine that joins a running service: they take its settings and the address of its store from it, and this machine's own
// configuration on top.

import type { Log } from '@millrace/base/log';
import { readMachine } from '@millrace/base/machine';
import { openClient } from '@millrace/client';
import { definedOf } from '@millrace/protocol';
import { findCgroups } from '@millrace/sandbox';
import { openServiceStore, readConfig, type ServiceConfig, StartError, Supervisor } from '@millrace/server';

interface JoinOptions {
  readonly url: string;
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
export async function joinService({ url, key, path, overrides, timeoutMs = 600_000, signal }: JoinOptions): Promise<ServiceConfig> {
  await using client = openClient({ url, timeoutMs, ...definedOf({ key }) });
  const { config: base, local_store } = await client.workerSettings(definedOf({ signal }));
  const config = readConfig(path, overrides, base);
  const { id, name } = readMachine(undefined, {}); // the host itself, whatever its name in Slurm
  if (local_store !== null && local_store.machine_id !== id)
    throw new StartError(
      `the service at ${url} keeps its store in a file on ${local_store.machine}, and this is ${name}: start the service with --store postgres://…, which all machines reach`,
    );
  return config;
}

interface JoinedOptions {
  readonly count: number;
  readonly log: Log;
  /** Aborted: finish what runs, hand back the rest, leave. */
  readonly stop: AbortSignal;
  /** Aborted: hand back everything now. */
  readonly urged: AbortSignal;
  readonly onReady?: () => void;
}

/** Runs worker processes until `stop`. Throws a StartError if none can start. */
export async function runJoinedWorkers(config: ServiceConfig, { count, log, stop, urged, onReady }: JoinedOptions): Promise<void> {
  await findCgroups({ enter: true }); // before there are workers, which inherit the place
  await using store = await openServiceStore(config, log, 'none'); // it only removes workers that died
  await using workers = new Supervisor({ count, config, store, log, logFormat: 'json' });
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
