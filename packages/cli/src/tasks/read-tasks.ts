// The tasks of a batch or an evaluation, from a file of JSON lines: all of one scenario.

import { definedOf } from '@millrace/protocol';
import { type Arguments, UsageError } from '../command/command.ts';
import type { Io } from '../terminal/io.ts';
import { renderFaults } from './faults.ts';
import { readInput } from './read-input.ts';
import { checkScenarioOption, parseTaskLines } from './task-lines.ts';

interface TaskFile {
  /** Errors begin with it. */
  readonly source: string;
  /** The line of each task. */
  readonly lines: readonly number[];
  readonly tasks: readonly Record<string, unknown>[];
  readonly scenario: string;
}

/** `what` is `a batch` or `an evaluation`, for the messages. */
export async function readTasks(args: Arguments, io: Io, what: string): Promise<TaskFile> {
  const named = args.text('scenario');
  const { source, content } = await readInput(args.positionals[0], io);
  const input = parseTaskLines(content, { siblings: 1, prefix: '', ...definedOf({ scenario: named }) });
  if (input.bad.length > 0) throw new UsageError(['nothing was submitted:', ...renderFaults(input.bad, { source })].join('\n'));
  checkScenarioOption(named, input, source);
  const [scenario, ...others] = [...new Set(input.submissions.map((one) => one.scenario))];
  if (scenario === undefined) throw new UsageError(`${source} has no tasks`);
  if (others.length > 0) throw new UsageError(`${what} has one scenario, but ${source} has ${scenario} and ${others.join(', ')}`);
  return { source, lines: input.lines, tasks: input.submissions.map(({ task }) => task), scenario };
}
