// `millrace view`: the dashboard's pages on a file of results, without a service.

import { messageOf } from '@millrace/protocol';
import { viewFile } from '@millrace/server';
import { type Arguments, type Command, type Io, UsageError } from '../command/command.ts';

export const viewCommand: Command = {
  name: 'view',
  summary: 'Shows the results in a file in the browser, without a service: rollouts, conversations, tokens, siblings, failures.',
  positional: '<file>',
  options: {
    tokenizer: { type: 'string', value: 'FOLDER', describe: 'The tokenizer that shows the text of single tokens.' },
    port: { type: 'string', value: 'PORT', describe: 'The port on 127.0.0.1. Default: a free one.' },
  },
  examples: ['millrace view results.jsonl', 'millrace view results.jsonl --tokenizer models/qwen3'],
  run: runView,
};

async function runView(args: Arguments, io: Io): Promise<number> {
  const [file] = args.positionals;
  if (file === undefined) throw new UsageError('which file? Name one that submit --trajectories wrote: millrace view results.jsonl');
  const stopped = Promise.withResolvers<void>();
  const release = io.onInterrupt(() => stopped.resolve());
  try {
    await using viewer = await open(file, args);
    if (viewer.rollouts === 0 && viewer.skipped > 0)
      throw new UsageError(`${file} has no rollouts, but ${viewer.skipped} other lines; give what millrace submit printed`);
    const skipped = viewer.skipped === 0 ? '' : ` (${viewer.skipped} lines hold none)`;
    io.stdout.write(`${viewer.rollouts} rollouts${skipped}: ${viewer.url}/\n`);
    io.stderr.write('Ctrl+C ends it.\n');
    await stopped.promise;
    return 0;
  } finally {
    release();
  }
}

async function open(file: string, args: Arguments) {
  const port = Number(args.text('port') ?? 0);
  if (!Number.isInteger(port) || port < 0 || port > 65_535)
    throw new UsageError(`--port is ${args.text('port')}, not a number from 0 to 65535`);
  try {
    return await viewFile({ file, port, tokenizer: args.text('tokenizer') });
  } catch (error) {
    throw new UsageError(`${file} cannot be shown: ${messageOf(error)}`);
  }
}
