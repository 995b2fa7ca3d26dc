// `millrace serve`: the server and its workers on this machine, until it is asked to stop. Everything that they need is checked
// before the service accepts its first request.

import type { Log } from '@millrace/base/log';
import { openClient } from '@millrace/client';
import { definedOf, messageOf } from '@millrace/protocol';
import { findCgroups } from '@millrace/sandbox';
import { type LogFormat, openProcessLog, openServer, runStartChecks, type ServiceConfig, StartError, Supervisor } from '@millrace/server';
import type { Store } from '@millrace/store';
import { type Arguments, type Command, type Io, UsageError } from '../command/command.ts';
import { openPaint, wantsColor } from '../terminal/text.ts';
import { onStopAsked, type ServeSettings, serveOptions, toServeSettings } from './config-options.ts';
import { openDrainView } from './drain-view.ts';
import { withModelFolder } from './model-name.ts';
import { renderBanner, renderRefusal, renderStarting } from './serve-text.ts';

export const serveCommand: Command = {
  name: 'serve',
  summary: 'Runs the service with its workers on this machine.',
  options: {
    ...serveOptions,
    log: { type: 'string', value: 'FORMAT', describe: '`text` or `json`; by default text on a terminal and JSON lines elsewhere.' },
  },
  examples: [
    'millrace serve --tokenizer models/qwen3',
    'millrace serve --tokenizer models/qwen3 --backend http://gpu-0:8000 --backend http://gpu-1:8000',
    'millrace serve --tokenizer Qwen/Qwen3-8B --backend http://127.0.0.1:8000',
    'millrace serve --config millrace.json --workers 4 --log json',
  ],
  run: runServe,
};

async function runServe(args: Arguments, io: Io): Promise<number> {
  const asked = toServeSettings(args, io);
  const settings = { ...asked, config: await withModelFolder(asked.config, { ...asked, io }) };
  const format = toLogFormat(args, io);
  if (settings.workers > 0 && settings.config.model.tokenizer === undefined)
    throw new UsageError(
      '--tokenizer is missing: the folder with tokenizer.json and tokenizer_config.json, the address of a backend, or the name of a model',
    );
  const checks = await runStartChecks(settings.config, settings);
  const failed = checks.filter((check) => check.level === 'fail');
  if (failed.length > 0) return refuse(io, renderRefusal(failed, openPaint(wantsColor(io.stderr, io.env))));
  await findCgroups({ enter: true }); // before there are workers, which inherit the place
  try {
    return await startService(settings, { io, format, readAgain: () => toServeSettings(args, io).config });
  } catch (error) {
    if (!(error instanceof StartError)) throw error;
    return refuse(io, `millrace: cannot start: ${error.message}\n`);
  }
}

function refuse(io: Io, text: string): number {
  io.stderr.write(text);
  return 1;
}

function toLogFormat(args: Arguments, io: Io): LogFormat {
  return args.choice('log', ['text', 'json']) ?? (io.stdout.isTTY === true ? 'text' : 'json');
}

export interface ServiceRun {
  readonly io: Io;
  readonly format: LogFormat;
  /** Reads the configuration again, for its keys. */
  readonly readAgain?: () => ServiceConfig;
  /** Called when the API answers. */
  readonly onUp?: (url: string) => Promise<void>;
  /** Resolves with the reason when something that the service needs is gone. */
  readonly failed?: Promise<string>;
  /** Called when it is asked to stop, while everything still works. */
  readonly beforeStop?: (store: Store) => Promise<void>;
}

/** Runs the service until it is asked to stop, or cannot go on. Returns the exit code. */
export async function startService({ config, workers: count, backends }: ServeSettings, run: ServiceRun): Promise<number> {
  const { io, format } = run;
  const log = openProcessLog(format, 'server');
  await using server = await openServer(config, { log });
  const onModel = server.useModel;
  await using workers = new Supervisor({ count, config, store: server.store, log, logFormat: format, onModel });
  const drain = openDrainView(io, { format, log, store: server.store, workers, handBackMs: config.pipeline.handBackMs });
  using _keys = onReload(run, (next) => server.useKeys(next.http), log);
  const stop = Promise.withResolvers<'asked'>();
  using _ = onStop(io, (times) => {
    stop.resolve('asked');
    if (times === 2) drain.handBackNow();
    if (times > 2) process.exit(130);
  });
  if (format === 'text' && count > 0) io.stdout.write(`${renderStarting(count, paintFor(io))}\n`);
  const isUp = await Promise.race([workers.started.then(() => true), stop.promise.then(() => false)]);
  if (isUp) {
    const url = await server.listen();
    await run.onUp?.(url);
    await joinBackends(backends, { url, io, ...definedOf({ key: config.http.keys[0] }) });
    if (format === 'json') io.stdout.write(`${JSON.stringify({ url, workers: count })}\n`);
    else io.stdout.write(renderBanner({ url, config, workers: count, ...(await lookAround(server.store)) }, paintFor(io)));
  }
  const toReason = (reason: string) => ({ reason });
  const noWorker = workers.failed.then((reason) => toReason(`no worker can start any more: ${reason}`));
  const why = await Promise.race([stop.promise, noWorker, ...(run.failed === undefined ? [] : [run.failed.then(toReason)])]);
  if (why === 'asked') await run.beforeStop?.(server.store);
  server.drain();
  workers.drain();
  if (why !== 'asked') return refuse(io, `millrace: stopped, because ${why.reason}\n`);
  await drain.run();
  return 0;
}

function paintFor(io: Io) {
  return openPaint(wantsColor(io.stdout, io.env));
}

/** SIGHUP reads the keys again. On a terminal it says that the terminal is gone, and ends the process as ever. */
function onReload({ io, readAgain }: ServiceRun, use: (config: ServiceConfig) => void, log: Log): Disposable {
  if (readAgain === undefined || io.stdout.isTTY === true) return { [Symbol.dispose]() {} };
  const reload = () => {
    try {
      const config = readAgain();
      use(config);
      const { keys, submitKeys, readKeys, workerKeys } = config.http;
      log.info('keys-reload', {
        keys: keys.length,
        submitKeys: submitKeys.length,
        readKeys: readKeys.length,
        workerKeys: workerKeys.length,
      });
    } catch (error) {
      log.error('keys-reload-failed', { error: messageOf(error) });
    }
  };
  process.on('SIGHUP', reload);
  return { [Symbol.dispose]: () => void process.off('SIGHUP', reload) };
}

function onStop(io: Io, listener: (times: number) => void): Disposable {
  const release = onStopAsked(io, listener);
  return { [Symbol.dispose]: release };
}

async function lookAround(store: { backends(): Promise<readonly { url: string }[]>; counts(): Promise<Record<'queued', number>> }) {
  const [backends, counts] = await Promise.all([store.backends(), store.counts()]);
  return { backends: backends.map(({ url }) => url), queued: counts.queued };
}

interface Joining {
  readonly url: string;
  readonly key?: string;
  readonly io: Io;
}

/** Through the service's own route, as `millrace backend add` does it. */
async function joinBackends(backends: readonly string[], { io, ...address }: Joining): Promise<void> {
  if (backends.length === 0) return;
  await using client = openClient(address);
  for (const url of backends)
    await client.backends.join({ url }).catch((error) => void io.stderr.write(`millrace: ${url} could not join: ${messageOf(error)}\n`));
}
