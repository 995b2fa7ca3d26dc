// `millrace worker`: more workers for a service that runs: one process on the service's own store, or the workers of another machine.

import { availableParallelism } from 'node:os';
import { definedOf } from '@millrace/protocol';
import { openProcessLog, openWorker } from '@millrace/server';
import { type Arguments, type Command, checkHttpAddress, type Io, UsageError } from '../command/command.ts';
import { chooseWorkers, configOptions, onStopAsked, toConfig, toOverrides } from './config-options.ts';
import { joinService, runJoinedWorkers } from './join.ts';
import { withModelFolder } from './model-name.ts';

export const workerCommand: Command = {
  name: 'worker',
  summary: 'Adds a worker to a service that is already running: on the same machine and store, or, with --join, from any machine.',
  options: {
    ...configOptions,
    join: {
      type: 'string',
      multiple: true,
      value: 'URL',
      describe:
        'Takes settings from the service at this address, and works for it through this server. May be repeated: any of the servers will do.',
    },
    key: { type: 'string', value: 'KEY', describe: 'Key of that service; MILLRACE_KEY by default.' },
    workers: { type: 'string', value: 'N', describe: 'With --join: worker processes; one per core by default, at most 8.' },
    label: { type: 'string', multiple: true, value: 'NAME=VALUE', describe: 'A label of this machine; may be repeated.' },
  },
  examples: [
    'millrace worker --data .millrace --tokenizer models/qwen3',
    'millrace worker --join http://node-1:8007 --workers 16 --label gpu=none',
    'millrace worker --join http://node-1:8007 --join http://node-2:8007',
  ],
  run: (args, io) => (args.list('join').length === 0 ? runOne(args, io) : runMachine(args, io)),
};

const finishing = 'millrace: finishing what runs; Ctrl-C again hands it back to the queue now\n';

async function runOne(args: Arguments, io: Io): Promise<number> {
  for (const name of ['key', 'workers'])
    if (args.text(name) !== undefined) throw new UsageError(`--${name} needs --join, the address of a service`);
  const stop = Promise.withResolvers<void>();
  const log = openProcessLog(io.stderr.isTTY === true ? 'text' : 'json', 'worker');
  const config = await withModelFolder(toConfig(args, io, toLabelOverrides(args)), { backends: [], io });
  await using running = await openWorker(config, { log });
  for (const warning of running.model.warnings) log.warn('model-warning', { warning });
  const release = onStopAsked(io, (times) => {
    if (times === 2) running.worker.handBackNow();
    if (times > 2) process.exit(130);
    stop.resolve();
  });
  if (io.stderr.isTTY === true) io.stderr.write(`millrace: ${running.worker.id} takes rollouts; Ctrl-C stops it\n`);
  await stop.promise;
  io.stderr.write(finishing);
  await running[Symbol.asyncDispose]();
  release();
  return 0;
}

async function runMachine(args: Arguments, io: Io): Promise<number> {
  const servers = args.list('join');
  for (const url of servers) checkHttpAddress(url, '--join ');
  const [asked, urged] = [new AbortController(), new AbortController()];
  const release = onStopAsked(io, (times) => {
    if (times > 2) process.exit(130);
    (times === 1 ? asked : urged).abort();
    if (times === 1) io.stderr.write(finishing);
  });
  const count = args.count('workers', 1) ?? chooseWorkers(availableParallelism());
  const overrides = { ...toOverrides(args), ...toLabelOverrides(args) };
  const key = args.text('key') ?? (io.env.MILLRACE_KEY || undefined);
  try {
    const config = await joinService({ servers, overrides, signal: asked.signal, ...definedOf({ key, path: args.text('config') }) });
    const log = openProcessLog(io.stderr.isTTY === true ? 'text' : 'json', 'worker');
    const onReady = () =>
      void io.stderr.write(
        `millrace: ${count} ${count === 1 ? 'worker takes' : 'workers take'} rollouts of ${servers.join(', ')}; Ctrl-C stops them\n`,
      );
    await runJoinedWorkers(config, { count, key, log, stop: asked.signal, urged: urged.signal, onReady });
    return 0;
  } finally {
    release();
  }
}

/** `--label` replaces the labels of the configuration. */
function toLabelOverrides(args: Arguments): Readonly<Record<string, unknown>> {
  const given = args.list('label');
  if (given.length === 0) return {};
  const labels = given.map((text) => {
    const at = text.indexOf('=');
    if (at < 1) throw new UsageError(`--label ${text} is not NAME=VALUE`);
    return [text.slice(0, at), text.slice(at + 1)] as const;
  });
  return { 'machine.labels': Object.fromEntries(labels) };
}
