// `millrace tool-server`: lends the sandboxes of this machine to agents that run elsewhere, over VeRL-Tool's protocol.

import { findCgroups } from '@millrace/sandbox';
import { checkPort, openProcessLog, openToolServer } from '@millrace/server';
import { type Arguments, type Command, type Io, UsageError } from '../command/command.ts';
import { configOptions, onStopAsked, toConfig } from './config-options.ts';

export const toolServerCommand: Command = {
  name: 'tool-server',
  summary: 'Runs single actions in sandboxes, for agents that run elsewhere: the tool server of VeRL-Tool, and environments of Harbor.',
  options: {
    config: configOptions.config,
    data: configOptions.data,
    host: { type: 'string', value: 'ADDRESS', describe: 'Address to listen on; any but a loopback address needs MILLRACE_KEY.' },
    port: { type: 'string', value: 'N', describe: 'Port to listen on; 5000 by default, 0 for any free one.' },
    sandboxes: { type: 'string', value: 'N', describe: 'How many sandboxes may be open; 64 by default. The next trajectory waits.' },
    timeout: { type: 'string', value: 'TIME', describe: 'How long one action may run; 30s by default.' },
    idle: { type: 'string', value: 'TIME', describe: 'After how long without an action a sandbox is closed; 30m by default.' },
  },
  examples: ['millrace tool-server', 'millrace tool-server --port 5500 --sandboxes 256 --timeout 60s'],
  run: runToolServer,
};

async function runToolServer(args: Arguments, io: Io): Promise<number> {
  const config = toConfig(args, io, { 'http.host': args.text('host'), 'http.port': args.count('port', 0) ?? 5000 });
  const port = await checkPort(config.http.host, config.http.port);
  if (port.level === 'fail') throw new Error(`${port.seen}; ${port.remedy}`);
  await findCgroups({ enter: true });
  const stop = Promise.withResolvers<void>();
  const release = onStopAsked(io, (times) => (times > 1 ? process.exit(130) : stop.resolve()));
  try {
    await using server = await open(config, args, io);
    io.stderr.write(`millrace: the tool server answers at ${server.url}/get_observation; Ctrl-C stops it\n`);
    await stop.promise;
    io.stderr.write('millrace: closing the sandboxes\n');
  } finally {
    release();
  }
  return 0;
}

async function open(config: ReturnType<typeof toConfig>, args: Arguments, io: Io) {
  try {
    return await openToolServer(config, {
      log: openProcessLog(io.stderr.isTTY === true ? 'text' : 'json', 'worker'),
      sandboxes: args.count('sandboxes', 1) ?? 64,
      timeoutMs: args.duration('timeout') ?? 30_000,
      idleMs: args.duration('idle') ?? 30 * 60_000,
    });
  } catch (error) {
    if (error instanceof Error && error.message.startsWith('refusing to listen'))
      throw new UsageError(`${error.message}; VeRL-Tool's trainers send no key, so run it on their machine, or through a tunnel`);
    throw error;
  }
}
