// Harbor task folders as the JSON lines of a submission. Either every folder can be run, or each that cannot is named with its reason.

import { messageOf } from '@millrace/protocol';
import { readHarborSubmissions } from '@millrace/scenarios';
import { UsageError } from '../command/command.ts';
import type { InputText } from './read-input.ts';

const mostShown = 10;

export async function readHarborInput(paths: readonly string[]): Promise<InputText> {
  const found = await Promise.all(
    paths.map((path) =>
      readHarborSubmissions(path).catch((error) => {
        throw new UsageError(`cannot read ${path}: ${messageOf(error)}`);
      }),
    ),
  );
  const faults = found.flatMap((one) => one.faults);
  if (faults.length > 0) {
    const shown = faults.slice(0, mostShown).map(({ folder, reason }) => `  ${folder}: ${reason}`);
    const more = faults.length > mostShown ? [`  and ${faults.length - mostShown} more`] : [];
    throw new UsageError(
      [`nothing was submitted: ${faults.length} bad task ${faults.length === 1 ? 'folder' : 'folders'}`, ...shown, ...more].join('\n'),
    );
  }
  const submissions = found.flatMap((one) => one.submissions);
  if (submissions.length === 0) throw new UsageError(`${paths.join(', ')}: there is no folder with a task.toml`);
  return {
    source: paths.join(', '),
    content: submissions.map(({ submission }) => `${JSON.stringify(submission)}\n`).join(''),
    names: submissions.map(({ folder }) => folder),
  };
}
