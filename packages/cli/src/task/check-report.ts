// The report of `millrace task check` for people.

import type { Io } from '../terminal/io.ts';
import { renderTable, toTableOptions } from '../terminal/table.ts';
import { toCount, toDuration } from '../terminal/text.ts';
import type { CheckedTask } from './check-tasks.ts';

const colours = { right: undefined, gold_fails: 'red', empty_passes: 'red', wrong_passes: 'red', flaky: 'yellow', broken: 'red' } as const;
const words = {
  right: 'right',
  gold_fails: 'its solution fails',
  empty_passes: 'passes without a solution',
  wrong_passes: 'passes with a wrong solution',
  flaky: 'differs between runs',
  broken: 'cannot be judged',
} as const;
const mostNames = 5;

export function renderReport(checked: readonly CheckedTask[], total: number, io: Io): string {
  const rows = checked.map(({ task, outcome, why, flaky, warnings, ms }) => {
    const named = flaky.length === 0 ? why : `${why ?? ''}: ${flaky.slice(0, mostNames).join(', ')}${flaky.length > mostNames ? ' …' : ''}`;
    const notes = [...(outcome === 'right' || named === undefined ? [] : [named]), ...warnings];
    const note = notes.length === 0 ? undefined : notes.join('; ');
    return { cells: [task, words[outcome], toDuration(ms)], colour: colours[outcome], note };
  });
  const right = checked.filter(({ outcome }) => outcome === 'right').length;
  const open = total - checked.length;
  const rest = open === 0 ? '' : `; ${toCount(open)} are not checked yet, run the command again to continue`;
  return [
    ...renderTable(['task', 'outcome', 'time'], rows, toTableOptions(io, [2])),
    '',
    `${toCount(right)} of ${toCount(total)} tasks are right${rest}`,
    '',
  ].join('\n');
}
