// `millrace serve`: the server and its workers on this machine, until it is asked to stop.

import { availableParallelism } from 'node:os';
import { findCgroups, openLog, openServer, Supervisor } from '@millrace/server';
import { type Command, UsageError } from '../command/command.ts';
import { askedToStop, configOptions, toConfig } from './config-options.ts';

export const serveCommand: Command = {
  name: 'serve',
  summary: 'Runs the service with its workers on this machine.',
  options: {
    ...configOptions,
    host: {
      type: 'string',
      value: 'ADDRESS',
      describe: 'Address to listen on; any but a loopback address needs MILLRACE_KEY or keys in the configuration.',
    },
    port: { type: 'string', value: 'N', describe: 'Port to listen on; 8007 by default, 0 takes a free one.' },
    workers: { type: 'string', value: 'N', describe: 'Worker processes; one per core by default, at most 8.' },
  },
  examples: ['millrace serve --tokenizer models/qwen3', 'millrace serve --config millrace.json --workers 4'],
  async run(args, io) {
    const config = toConfig(args, io, {
      'http.host': args.text('host'),
      'http.port': args.count('port', 0),
      workers: args.count('workers', 0),
    });
    const count = config.workers ?? Math.min(8, availableParallelism());
    if (count > 0 && config.model.tokenizer === undefined)
      throw new UsageError('--tokenizer is missing: the folder with tokenizer.json and tokenizer_config.json');
    await findCgroups({ enter: true }); // before there are workers, which inherit the place
    await using server = await openServer(config);
    await using _workers = new Supervisor({ count, config, store: server.store, log: openLog() });
    io.stdout.write(`${JSON.stringify({ url: server.url, workers: count })}\n`);
    await askedToStop(io);
    io.stderr.write('millrace: finishing what runs, handing back the rest; Ctrl-C leaves at once\n');
    server.drain();
    return 0;
  },
};
