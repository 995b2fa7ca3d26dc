// `millrace version`: the version in the package.json that this file was installed with.

import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import type { Command } from './command.ts';

const manifest = z.object({ version: z.string() });

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

/** From the nearest package.json above this file, whether it runs from source or is built. */
export async function readVersion(): Promise<string> {
  for (let folder = import.meta.dirname; ; folder = dirname(folder)) {
    const text = await readFile(join(folder, 'package.json'), 'utf8').catch(() => undefined);
    const parsed = text === undefined ? undefined : manifest.safeParse(JSON.parse(text));
    if (parsed?.success === true) return parsed.data.version;
    if (folder === dirname(folder)) return 'unknown';
  }
}
