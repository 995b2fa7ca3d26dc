// Asks before a command does something broad. Without a terminal nothing can be asked, so `--yes` is required.

import { createInterface } from 'node:readline';
import type { Io } from '../terminal/io.ts';
import { type Arguments, type Option, UsageError } from './command.ts';

export const yesOption = { yes: { type: 'boolean', short: 'y', describe: 'Does not ask first.' } } as const satisfies Record<
  string,
  Option
>;

/** True when the user agreed, on the terminal or with `--yes`. `question` ends with a question mark. */
export async function confirm(question: string, args: Arguments, io: Io): Promise<boolean> {
  if (args.flag('yes')) return true;
  if (io.stdin.isTTY !== true || io.stderr.isTTY !== true) throw new UsageError(`${question} Add --yes to do it without a terminal`);
  const lines = createInterface({ input: io.stdin, output: io.stderr });
  try {
    const answer = await new Promise<string>((resolve) => {
      lines.once('close', () => resolve(''));
      lines.question(`${question} [y/N] `, resolve);
    });
    return /^y(es)?$/i.test(answer.trim());
  } finally {
    lines.close();
  }
}
