// The options that `serve`, `worker` and `doctor` share: where the configuration comes from, and the fields that people set by hand.

import { availableParallelism } from 'node:os';
import { definedOf, messageOf } from '@millrace/protocol';
import { readConfig, type ServiceConfig } from '@millrace/server';
import { type Arguments, checkHttpAddress, type Io, type Option, UsageError } from '../command/command.ts';

export const configOptions = {
  config: { type: 'string', value: 'FILE', describe: 'Configuration file in JSON; docs/configuration.md lists every field.' },
  data: { type: 'string', value: 'FOLDER', describe: 'Folder of the store; .millrace by default.' },
  store: {
    type: 'string',
    value: 'ADDRESS',
    describe: 'A PostgreSQL database, postgres://user@host:port/database, for many machines; a file in the data folder by default.',
  },
  tokenizer: {
    type: 'string',
    value: 'FOLDER',
    describe:
      'Folder with the tokenizer.json and tokenizer_config.json of the model, the address of a backend, or the name of a model that this machine or the mirror in HF_ENDPOINT has.',
  },
  driver: {
    type: 'string',
    value: 'NAME',
    describe: "What runs sandboxes: `bubblewrap`, with the machine's own programs, by default; `apptainer` for tasks with images.",
  },
  scenarios: { type: 'string', value: 'FILES', describe: 'Modules with your own scenarios, separated by commas.' },
} as const satisfies Record<string, Option>;

export const serveOptions = {
  ...configOptions,
  host: {
    type: 'string',
    value: 'ADDRESS',
    describe: 'Address to listen on; any but a loopback address needs MILLRACE_KEY or keys in the configuration.',
  },
  port: { type: 'string', value: 'N', describe: 'Port to listen on; 8007 by default, 0 for any free one.' },
  workers: { type: 'string', value: 'N', describe: 'Worker processes; one per core by default, at most 8.' },
  backend: { type: 'string', multiple: true, value: 'URL', describe: 'An LLM server that joins at the start; may be repeated.' },
} as const satisfies Record<string, Option>;

export interface ServeSettings {
  readonly config: ServiceConfig;
  /** How many workers the service starts. */
  readonly workers: number;
  readonly backends: readonly string[];
}

export function toServeSettings(args: Arguments, io: Io): ServeSettings {
  const config = toConfig(args, io, {
    'http.host': args.text('host'),
    'http.port': args.count('port', 0),
    workers: args.count('workers', 0),
  });
  const backends = args.list('backend');
  for (const url of backends) checkHttpAddress(url, '--backend ');
  return { config, workers: config.workers ?? chooseWorkers(availableParallelism()), backends };
}

/** How many worker processes a machine with this many cores gets unless the user says. */
export function chooseWorkers(cpus: number): number {
  return Math.min(8, cpus);
}

export function toConfig(args: Arguments, io: Io, more: Readonly<Record<string, unknown>> = {}): ServiceConfig {
  const key = io.env.MILLRACE_KEY || undefined;
  const overrides = { ...toOverrides(args), ...definedOf({ 'http.keys': key === undefined ? undefined : [key] }), ...more };
  try {
    return readConfig(args.text('config'), overrides);
  } catch (error) {
    throw new UsageError(messageOf(error));
  }
}

/** The fields of the configuration that options set. */
export function toOverrides(args: Arguments): Readonly<Record<string, unknown>> {
  return {
    data: args.text('data'),
    'store.address': args.text('store'),
    'model.tokenizer': args.text('tokenizer'),
    'sandbox.driver': args.choice('driver', ['bubblewrap', 'apptainer']),
    scenarios: args.text('scenarios')?.split(','),
  };
}

/** Calls back at each Ctrl-C and each SIGTERM, with how many there were. The returned function ends it. */
export function onStopAsked(io: Io, listener: (times: number) => void): () => void {
  let times = 0;
  const ask = () => {
    times += 1;
    listener(times);
  };
  const release = io.onInterrupt(ask);
  process.on('SIGTERM', ask);
  return () => {
    release();
    process.off('SIGTERM', ask);
  };
}
