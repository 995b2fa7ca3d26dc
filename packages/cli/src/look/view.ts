// `millrace view`: the dashboard's pages on files of results or on a store, without a service.

import { messageOf } from '@millrace/protocol';
import { viewPath } from '@millrace/server';
import { type Arguments, type Command, type Io, type Option, UsageError } from '../command/command.ts';

/** How a path is read, for every command that reads one. */
export const pathOptions = {
  tokenizer: { type: 'string', value: 'FOLDER', describe: 'The tokenizer that shows the text of single tokens.' },
  blobs: {
    type: 'string',
    value: 'PLACE',
    describe: 'Where the trajectories of a store are, if `store.blobs` of its service names a place.',
  },
} as const satisfies Record<string, Option>;

export const viewCommand: Command = {
  name: 'view',
  summary: 'Shows the results in a file, a folder or a store in the browser, without a service. It changes nothing.',
  positional: '<file, folder or store>',
  options: {
    ...pathOptions,
    port: { type: 'string', value: 'PORT', describe: 'The port on 127.0.0.1. Default: a free one.' },
  },
  examples: ['millrace view results.jsonl --tokenizer models/qwen3', 'millrace view runs/', 'millrace view .millrace'],
  run: runView,
};

export function toPathOptions(args: Arguments): { tokenizer: string | undefined; blobs: string } {
  return { tokenizer: args.text('tokenizer'), blobs: args.text('blobs') ?? 'store' };
}

async function runView(args: Arguments, io: Io): Promise<number> {
  const [path] = args.positionals;
  if (path === undefined)
    throw new UsageError('which results? Name a file that submit --trajectories wrote, a folder of them, or the folder of a store');
  const stopped = Promise.withResolvers<void>();
  const release = io.onInterrupt(() => stopped.resolve());
  try {
    await using viewer = await open(path, args);
    if (viewer.rollouts === 0 && viewer.skipped > 0)
      throw new UsageError(`${path} has no rollouts, but ${viewer.skipped} other lines; give what millrace submit printed`);
    const skipped = viewer.skipped === 0 ? '' : ` (${viewer.skipped} lines hold none)`;
    io.stdout.write(`${viewer.rollouts} rollouts${skipped}: ${viewer.url}/\n`);
    io.stderr.write('Ctrl+C ends it.\n');
    await stopped.promise;
    return 0;
  } finally {
    release();
  }
}

async function open(path: string, args: Arguments) {
  const port = Number(args.text('port') ?? 0);
  if (!Number.isInteger(port) || port < 0 || port > 65_535)
    throw new UsageError(`--port is ${args.text('port')}, not a number from 0 to 65535`);
  try {
    return await viewPath({ path, port, ...toPathOptions(args) });
  } catch (error) {
    throw new UsageError(`${path} cannot be shown: ${messageOf(error)}`);
  }
}
