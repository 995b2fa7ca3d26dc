// Runs a benchmark here and in another checkout, in turns or at the same time: the speed of one machine changes by more than most changes do.

import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { percentile, round } from './report.ts';

interface Figure {
  readonly what: string;
  readonly unit: string;
  readonly value: number;
}

const here = fileURLToPath(new URL('../..', import.meta.url));

interface AgainstOptions {
  /** It is installed, and has a benchmark of this name. */
  readonly folder: string;
  readonly rounds: number;
  /**
   * Both run at the same time, so that whatever slows one down slows the other down too. Only for benchmarks that leave a core free, and
   * only their first phase: after it, one side may already be in the next.
   */
  readonly isAtOnce: boolean;
}

export async function runAgainst(name: string, { folder, rounds, isAtOnce }: AgainstOptions): Promise<string> {
  const runs: { readonly there: Figure[]; readonly own: Figure[] }[] = [];
  for (let count = 1; count <= rounds; count += 1) {
    console.error(`running ${name} in ${folder} and here, round ${count} of ${rounds} …`);
    const other = run(folder, name);
    if (!isAtOnce) await other;
    const [there, own] = await Promise.all([other, run(here, name)]);
    runs.push({ there, own });
  }
  return renderComparison(name, runs);
}

async function run(folder: string, name: string): Promise<Figure[]> {
  const child = spawn(process.execPath, [join('bench', 'main.ts'), name], { cwd: folder, stdio: ['ignore', 'pipe', 'inherit'] });
  const figures = readFigures(await text(child.stdout));
  if (figures.length === 0) throw new Error(`the benchmark ${name} printed no figures in ${folder}`);
  return figures;
}

/** The p50 of each row of a printed report. */
export function readFigures(report: string): Figure[] {
  return report.split('\n').flatMap((line) => {
    const [what, , p50, , , unit] = line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim());
    const value = Number(p50?.replaceAll(',', '') || Number.NaN);
    return what && unit && Number.isFinite(value) ? [{ what, unit, value }] : [];
  });
}

/** Rows are matched by their text, or, if both reports have the same number of rows, by their place. */
export function renderComparison(
  name: string,
  runs: readonly { readonly there: readonly Figure[]; readonly own: readonly Figure[] }[],
): string {
  const lines = ['', `## ${name}`, '', '| what | there | here | unit | here / there | in each round |', '|---|---:|---:|---|---:|---:|'];
  for (const [place, { what, unit }] of (runs[0]?.own ?? []).entries()) {
    const pairs = runs.flatMap(({ there, own }) => {
      const other =
        there.find((figure) => figure.what === what && figure.unit === unit) ?? (there.length === own.length ? there[place] : undefined);
      const mine = own[place];
      return other && mine ? [{ there: other.value, own: mine.value }] : [];
    });
    if (pairs.length === 0) continue;
    const median = (side: 'there' | 'own') =>
      percentile(
        pairs.map((pair) => pair[side]),
        0.5,
      );
    const ratios = pairs.map((pair) => round(pair.own / pair.there));
    const ratio = round(median('own') / median('there'));
    lines.push(`| ${what} | ${round(median('there'))} | ${round(median('own'))} | ${unit} | ${ratio} | ${ratios.join(', ')} |`);
  }
  return `${lines.join('\n')}\n`;
}
