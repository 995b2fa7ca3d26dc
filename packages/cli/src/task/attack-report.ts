// The report of `millrace task attack`: how each hacker fared, and for those that got through, what they did and how to close it.

import { attackOutcomes } from '../attack/attack-task.ts';
import type { Hacker } from '../attack/hackers/hacker.ts';
import type { AttackResult } from '../attack/run-attacks.ts';
import type { Io } from '../terminal/io.ts';
import { renderTable, toTableOptions } from '../terminal/table.ts';
import { toCount } from '../terminal/text.ts';

const mostTasks = 3;
const mostText = 300;

/** A task that cannot be attacked is not safe either. */
export const isThrough = ({ outcome }: AttackResult): boolean => outcome !== 'held' && outcome !== 'skipped';

export function renderCatalogue(hackers: readonly Hacker[], io: Io): string {
  const rows = hackers.map(({ name, kind, explain }) => ({ cells: [name, kind, explain] }));
  return `${renderTable(['hacker', 'kind', 'what it does'], rows, toTableOptions(io, [])).join('\n')}\n`;
}

export function renderAttacks(results: readonly AttackResult[], io: Io): string {
  const played = results.filter(({ outcome }) => outcome !== 'skipped' && outcome !== 'broken');
  const hackers = [...new Set(played.flatMap(({ hacker }) => hacker ?? []))];
  const rows = hackers.map((hacker) => {
    const counts = attackOutcomes.map((outcome) => played.filter((one) => one.hacker === hacker && one.outcome === outcome).length);
    const [held = 0] = counts;
    const isClosed = held === counts.reduce((sum, one) => sum + one, 0);
    return {
      cells: [hacker.name, hacker.kind, ...counts.map((count) => (count === 0 ? '' : toCount(count)))],
      colour: isClosed ? undefined : ('red' as const),
    };
  });
  const heads = ['hacker', 'kind', ...attackOutcomes];
  return [
    ...(rows.length === 0 ? [] : [...renderTable(heads, rows, toTableOptions(io, [2, 3, 4, 5])), '']),
    ...hackers.flatMap((hacker) => explain(hacker, played.filter((one) => one.hacker === hacker).filter(isThrough))),
    ...results.filter(({ outcome }) => outcome === 'broken').map(({ task, why }) => `${task} cannot be attacked: ${why}\n`),
    summarise(played),
    '',
  ].join('\n');
}

function explain({ name, kind, explain, fix }: Hacker, through: readonly AttackResult[]): string[] {
  if (through.length === 0) return [];
  const tasks = through.slice(0, mostTasks).map(({ task, outcome, why }) => `    ${task}: ${outcome}: ${why.slice(0, mostText)}`);
  const more = through.length > mostTasks ? [`    and ${toCount(through.length - mostTasks)} more tasks`] : [];
  return [`${name} (${kind}) got through`, `  ${explain}`, `  → ${fix}`, ...tasks, ...more, ''];
}

function summarise(played: readonly AttackResult[]): string {
  const through = played.filter(isThrough);
  if (through.length === 0) return `${toCount(played.length)} attacks, and none got through`;
  const count = new Set(through.map(({ hacker }) => hacker)).size;
  return `${toCount(through.length)} of ${toCount(played.length)} attacks got through, by ${toCount(count)} ${count === 1 ? 'hacker' : 'hackers'}`;
}

export function toAttackJson(tasks: readonly string[], results: readonly AttackResult[]) {
  const counts: Record<string, number> = {};
  for (const { outcome } of results) counts[outcome] = (counts[outcome] ?? 0) + 1;
  return {
    counts,
    tasks: tasks.map((task) => {
      const own = results.filter((one) => one.task === task);
      const broken = own.find(({ outcome }) => outcome === 'broken');
      const attacks = own.flatMap(({ hacker, outcome, why, reward }) =>
        hacker === undefined || outcome === 'skipped'
          ? []
          : [{ hacker: hacker.name, kind: hacker.kind, outcome, reward, why, ...(outcome === 'held' ? {} : { fix: hacker.fix }) }],
      );
      return { task, ...(broken && { broken: broken.why }), attacks };
    }),
  };
}
