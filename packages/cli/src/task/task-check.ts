// `millrace task check`: whether tasks can be trusted, before they are used. Exit code 0 if all are right.

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ServiceConfig } from '@millrace/server';
import { openPlays } from '../attack/open-plays.ts';
import { type Arguments, type Command, type Io, jsonOption } from '../command/command.ts';
import { openLiveLine } from '../terminal/live-line.ts';
import { bar, toCount, toDuration } from '../terminal/text.ts';
import { openBusyMachine } from './busy-machine.ts';
import { renderReport } from './check-report.ts';
import { type CheckedTask, type CheckOptions, checkTasks, readJournal } from './check-tasks.ts';
import { canRun, readTaskConfig, scenarioOptions } from './task-config.ts';
import { readTaskFile, type TaskLine } from './task-file.ts';

export const checkCommand: Command = {
  name: 'task check',
  summary: 'Checks tasks in real sandboxes: their own solution must pass, no solution must fail, and repeats must agree.',
  positional: '<file or folder>',
  options: {
    ...scenarioOptions,
    repeat: {
      type: 'string',
      value: 'N',
      describe:
        'Judges the solution, the empty answer and a wrong one N times each, to find verdicts that change; 1 by default, without a wrong one.',
    },
    busy: {
      type: 'boolean',
      describe: 'Keeps the cores, the memory of a sandbox and the disk busy meanwhile: a verdict must not depend on the load.',
    },
    parallel: { type: 'string', value: 'N', describe: 'How many tasks are checked at a time; 2 by default.' },
    out: {
      type: 'string',
      value: 'FILE',
      describe: 'Writes the tasks that can be used to this file, without tests that differ between runs.',
    },
    again: { type: 'boolean', describe: 'Checks all tasks again. Otherwise what FILE.checked.jsonl has is not repeated.' },
    ...jsonOption,
  },
  examples: [
    'millrace task check tasks.jsonl',
    'millrace task check harbor-tasks/',
    'millrace task check rows.parquet --repeat 5 --out good.jsonl --json',
    'millrace task check tasks.jsonl --repeat 20 --busy',
  ],
  run: runCheck,
};

async function runCheck(args: Arguments, io: Io): Promise<number> {
  const [path = ''] = args.positionals;
  const [repeats, busy] = [args.count('repeat', 1) ?? 1, args.flag('busy')];
  const lines = await readTaskFile(path, args.text('scenario') ?? 'swe');
  const folder = await mkdtemp(join(tmpdir(), 'millrace-')); // short: sockets are in it
  const cancel = new AbortController();
  const release = io.onInterrupt(() => cancel.abort(new Error('interrupted')));
  try {
    const config = readTaskConfig(args, folder);
    if (!(await canRun(config, io))) return 1;
    const journal = `${path.replace(/\/+$/, '')}.checked.jsonl`;
    if (args.flag('again')) await rm(journal, { force: true });
    const known = await readJournal(journal, { repeats, busy });
    const parallel = args.count('parallel', 1) ?? 2;
    await check(
      lines.filter(({ digest }) => !known.has(digest)),
      { config, folder, known, journal, repeats, busy, parallel, total: lines.length, io, signal: cancel.signal },
    );
    return await report(lines, known, { args, io });
  } finally {
    release();
    await rm(folder, { recursive: true, force: true, maxRetries: 3 });
  }
}

interface Checking extends Omit<CheckOptions, 'deps' | 'onChecked'> {
  readonly config: ServiceConfig;
  readonly folder: string;
  /** By digest; filled with what is checked. */
  readonly known: Map<string, CheckedTask>;
  readonly total: number;
  readonly io: Io;
}

async function check(lines: readonly TaskLine[], checking: Checking): Promise<void> {
  if (lines.length === 0) return;
  const { config, folder, known, total, io, ...rest } = checking;
  await using plays = await openPlays(config, folder);
  const live = openProgress(io, { total, skipped: total - lines.length });
  if (live.skipped > 0) live.say(`${toCount(live.skipped)} tasks were checked before (${rest.journal}); use --again to repeat them`);
  const onChecked = (checked: CheckedTask) => {
    known.set(checked.digest, checked);
    if (checked.outcome !== 'right') live.say(`${checked.task}: ${checked.outcome}: ${checked.why ?? ''}`);
    live.count();
  };
  try {
    await using _load = rest.busy ? await openBusyMachine(plays.deps.driver, rest.signal) : undefined;
    await checkTasks(lines, { deps: plays.deps, onChecked, ...rest });
  } finally {
    live.close();
  }
}

function openProgress(io: Io, { total, skipped }: { readonly total: number; readonly skipped: number }) {
  const startMs = performance.now();
  let done = 0;
  const render = () => {
    const elapsedMs = performance.now() - startMs;
    const left = done === 0 ? '-' : toDuration((elapsedMs / done) * (total - skipped - done));
    return `${toCount(skipped + done)}/${toCount(total)} tasks checked  after ${toDuration(elapsedMs)}  ETA ${left}`;
  };
  const live = openLiveLine(io, {
    render: (columns) => `▕${bar((skipped + done) / total, Math.min(30, columns - 60))}▏ ${render()}`,
    renderPlain: render,
  });
  const count = () => {
    done += 1;
    live.update();
  };
  return { ...live, skipped, count };
}

async function report(
  lines: readonly TaskLine[],
  known: ReadonlyMap<string, CheckedTask>,
  { args, io }: { args: Arguments; io: Io },
): Promise<number> {
  const checked = lines.flatMap((line) => known.get(line.digest) ?? []);
  const out = args.text('out');
  if (out !== undefined) await writeFile(out, renderGood(lines, known));
  io.stdout.write(
    args.flag('json') ? `${JSON.stringify(toJson(checked, lines.length), undefined, 2)}\n` : renderReport(checked, lines.length, io),
  );
  return checked.length === lines.length && checked.every(({ outcome }) => outcome === 'right') ? 0 : 1;
}

function toJson(checked: readonly CheckedTask[], total: number) {
  const counts: Record<string, number> = {};
  for (const { outcome } of checked) counts[outcome] = (counts[outcome] ?? 0) + 1;
  return { total, checked: checked.length, counts, tasks: checked.map(({ digest: _, ...rest }) => rest) };
}

/** A task with tests that differ is used without them, if the others still show the repair. */
function renderGood(lines: readonly TaskLine[], known: ReadonlyMap<string, CheckedTask>): string {
  return lines
    .flatMap((line) => {
      const found = known.get(line.digest);
      if (!found || (found.outcome !== 'right' && found.outcome !== 'flaky')) return [];
      const without = (names: unknown) => (Array.isArray(names) ? names.filter((name) => !found.flaky.includes(String(name))) : names);
      const { FAIL_TO_PASS: repaired, PASS_TO_PASS: kept, ...rest } = line.task;
      const lists = {
        ...(repaired === undefined ? {} : { FAIL_TO_PASS: without(repaired) }),
        ...(kept === undefined ? {} : { PASS_TO_PASS: without(kept) }),
      };
      if (found.outcome === 'flaky' && (!Array.isArray(lists.FAIL_TO_PASS) || lists.FAIL_TO_PASS.length === 0)) return [];
      return [
        `${JSON.stringify({ ...(line.id === undefined ? {} : { id: line.id }), scenario: line.scenario, task: { ...rest, ...lists } })}\n`,
      ];
    })
    .join('');
}
