// `millrace version`: the version in the package.json that this file was installed with.

import { readVersion } from '@millrace/base/version';
import type { Command } from './command.ts';

export const versionCommand: Command = {
  name: 'version',
  summary: 'Prints the version of this command.',
  options: {},
  examples: ['millrace version', 'millrace --version'],
  async run(_args, io) {
    io.stdout.write(`${await readVersion()}\n`);
    return 0;
  },
};
