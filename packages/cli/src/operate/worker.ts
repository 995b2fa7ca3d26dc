// `millrace worker`: one more worker process on the store of a service.

import { openWorker } from '@millrace/server';
import type { Command } from '../command/command.ts';
import { askedToStop, configOptions, toConfig } from './config-options.ts';

export const workerCommand: Command = {
  name: 'worker',
  summary: 'Adds a worker to a service that runs already, on the same machine and store.',
  options: configOptions,
  examples: ['millrace worker --data .millrace --tokenizer models/qwen3'],
  async run(args, io) {
    await using _running = await openWorker(toConfig(args, io));
    await askedToStop(io);
    io.stderr.write('millrace: finishing what runs, handing back the rest; Ctrl-C leaves at once\n');
    return 0;
  },
};
