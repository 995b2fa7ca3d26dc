// `millrace worker`: one more worker process on the store of a service.

import { openProcessLog, openWorker } from '@millrace/server';
import type { Command } from '../command/command.ts';
import { configOptions, onStopAsked, toConfig } from './config-options.ts';

export const workerCommand: Command = {
  name: 'worker',
  summary: 'Adds a worker to a service that is already running, on the same machine and store.',
  options: configOptions,
  examples: ['millrace worker --data .millrace --tokenizer models/qwen3'],
  async run(args, io) {
    const stop = Promise.withResolvers<void>();
    const log = openProcessLog(io.stderr.isTTY === true ? 'text' : 'json', 'worker');
    await using running = await openWorker(toConfig(args, io), { log });
    for (const warning of running.model.warnings) log.warn('model-warning', { warning });
    const release = onStopAsked(io, (times) => {
      if (times === 2) running.worker.handBackNow();
      if (times > 2) process.exit(130);
      stop.resolve();
    });
    if (io.stderr.isTTY === true) io.stderr.write(`millrace: ${running.worker.id} takes rollouts; Ctrl-C stops it\n`);
    await stop.promise;
    io.stderr.write('millrace: finishing what runs; Ctrl-C again hands it back to the queue now\n');
    await running[Symbol.asyncDispose]();
    release();
    return 0;
  },
};
