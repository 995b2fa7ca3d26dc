// `millrace task import`: rows of a data set as tasks, one JSON line each, ready for `millrace submit`.

import { writeFile } from 'node:fs/promises';
import { setImmediate } from 'node:timers/promises';
import { describeIssues, messageOf } from '@millrace/protocol';
import { loadScenarios, type SweRowKind, sweRowKindOf, sweRowKinds, toSweTask } from '@millrace/scenarios';
import { type Arguments, type Command, type Io, UsageError } from '../command/command.ts';
import { openLiveLine } from '../terminal/live-line.ts';
import { bar, toCount } from '../terminal/text.ts';
import { type DataRow, readRows } from './read-rows.ts';

export const importCommand: Command = {
  name: 'task import',
  summary: 'Makes tasks from the rows of a data set: JSON lines or Parquet in, JSON lines out.',
  positional: '<kind> <rows>',
  options: {
    out: { type: 'string', value: 'FILE', describe: 'Writes the tasks to this file; to standard output by default.' },
    limit: { type: 'string', value: 'N', describe: 'Takes the first N rows only.' },
    'skip-bad': { type: 'boolean', describe: 'Leaves out rows that cannot be used, instead of writing nothing.' },
  },
  examples: ['millrace task import swe-gym rows.parquet --out tasks.jsonl', 'millrace task import auto rows.jsonl | millrace submit -n 8'],
  run: runImport,
};

async function runImport(args: Arguments, io: Io): Promise<number> {
  const [kind = '', path = ''] = args.positionals;
  const chosen = toKind(kind);
  const rows = (await readRows(path)).slice(0, args.count('limit', 1));
  const { lines, bad } = await convert(rows, chosen, io);
  for (const { row, reason } of bad.slice(0, 10)) io.stderr.write(`${path}: row ${row}: ${reason}\n`);
  if (bad.length > 10) io.stderr.write(`and ${toCount(bad.length - 10)} more\n`);
  const isGood = bad.length === 0 || (args.flag('skip-bad') && lines.length > 0);
  if (isGood) {
    const out = args.text('out');
    const text = lines.map((line) => `${line}\n`).join('');
    if (out === undefined) io.stdout.write(text);
    else await writeFile(out, text);
  }
  const result = isGood ? `${toCount(lines.length)} tasks` : 'nothing was written; use --skip-bad to leave these rows out';
  io.stderr.write(`${toCount(rows.length)} rows, ${toCount(bad.length)} of them cannot be used: ${result}\n`);
  return isGood ? 0 : 1;
}

function toKind(kind: string): SweRowKind | undefined {
  if (kind === 'auto') return undefined;
  const found = sweRowKinds.find((one) => one === kind);
  if (found === undefined) throw new UsageError(`there is no kind of rows ${kind}: use ${sweRowKinds.join(', ')}, or auto`);
  return found;
}

const rowsAtOnce = 50;

interface Converted {
  readonly lines: readonly string[];
  readonly bad: readonly { readonly row: number; readonly reason: string }[];
}

/** The first row is number 1. */
async function convert(rows: readonly DataRow[], chosen: SweRowKind | undefined, io: Io): Promise<Converted> {
  const scenario = (await loadScenarios([])).get('swe');
  const lines: string[] = [];
  const bad: { row: number; reason: string }[] = [];
  let done = 0;
  const renderPlain = () => `${toCount(done)}/${toCount(rows.length)} rows`;
  const live = openLiveLine(io, {
    render: (columns) => `▕${bar(done / rows.length, Math.max(5, Math.min(30, columns - 40)))}▏ ${renderPlain()}`,
    renderPlain,
  });
  for (const [at, row] of rows.entries()) {
    done = at;
    live.update();
    if (at % rowsAtOnce === 0) await setImmediate(); // the line is drawn by a timer
    try {
      const kind = chosen ?? sweRowKindOf(row);
      if (kind === undefined) throw new Error(`no data set is known with the fields ${Object.keys(row).join(', ')}`);
      const task = toSweTask(row, kind);
      const parsed = await scenario?.task.safeParseAsync(task);
      if (parsed?.success === false) throw new Error(describeIssues(parsed.error.issues));
      lines.push(JSON.stringify({ scenario: 'swe', task }));
    } catch (error) {
      bad.push({ row: at + 1, reason: messageOf(error) });
    }
  }
  live.close();
  return { lines, bad };
}
