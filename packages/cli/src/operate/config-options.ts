// The options that `serve` and `worker` share: where the configuration comes from, and the fields that people set by hand.

import { messageOf } from '@millrace/protocol';
import { readConfig, type ServiceConfig } from '@millrace/server';
import { type Arguments, type Io, type Option, UsageError } from '../command/command.ts';

export const configOptions = {
  config: { type: 'string', value: 'FILE', describe: 'A JSON file with the configuration; docs/configuration.md has every field.' },
  data: { type: 'string', value: 'FOLDER', describe: 'The folder of the store; .millrace by default.' },
  tokenizer: {
    type: 'string',
    value: 'FOLDER',
    describe: "The folder with the model's tokenizer.json and tokenizer_config.json, or a backend's address.",
  },
  scenarios: { type: 'string', value: 'FILES', describe: 'Modules with scenarios of your own, separated by commas.' },
} as const satisfies Record<string, Option>;

export function toConfig(args: Arguments, io: Io, more: Readonly<Record<string, unknown>> = {}): ServiceConfig {
  const key = io.env.MILLRACE_KEY;
  const overrides = {
    data: args.text('data'),
    'model.tokenizer': args.text('tokenizer'),
    scenarios: args.text('scenarios')?.split(','),
    ...(key ? { 'http.keys': [key] } : {}),
    ...more,
  };
  try {
    return readConfig(args.text('config'), overrides);
  } catch (error) {
    throw new UsageError(messageOf(error));
  }
}

/** Resolves at the first Ctrl-C or SIGTERM; a second Ctrl-C leaves at once. */
export function askedToStop(io: Io): Promise<void> {
  return new Promise((resolve) => {
    let asked = 0;
    io.onInterrupt(() => {
      asked += 1;
      if (asked > 1) process.exit(130);
      resolve();
    });
    process.once('SIGTERM', () => resolve());
  });
}
