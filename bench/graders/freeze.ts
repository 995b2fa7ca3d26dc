// Searches for texts of a megabyte that take a grader or a parser too long: made of the fragments that they look for, by grammars, and mutated. `FREEZE_SECONDS` is how
// much CPU time it takes (60); what it finds belongs into packages/server/test/freeze/corpus.json.

import { loadavg } from 'node:os';
import { makeRandom } from '@millrace/testkit';
import { searchSlow } from '../../packages/server/test/freeze/search.ts';
import { targets } from '../../packages/server/test/freeze/targets.ts';
import type { BenchReport } from '../report/report.ts';

/** On a busy machine, time on the wall would be a shorter search. */
function ownCpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

export async function runFreezeBench(): Promise<BenchReport> {
  const seed = Date.now() % 1_000_000;
  const seconds = Number(process.env.FREEZE_SECONDS ?? 60);
  const untilMs = ownCpuMs() + 1000 * seconds;
  const slow = searchSlow({ random: makeRandom(seed), now: ownCpuMs, untilMs });
  const mostOf = (target: string) => targets[target]?.mostMs ?? 0;
  const missed = slow.filter(({ target, ms }) => ms > mostOf(target));
  return {
    title: 'The slowest text of a megabyte',
    rows: slow.slice(0, 20).map(({ target, ms }) => ({ what: target, unit: 'ms', samples: [ms] })),
    targets: [
      {
        claim: 'no reader on an event loop takes more than 20 ms in one turn',
        kept: missed.every(({ target }) => mostOf(target) > 100),
      },
      {
        claim: 'no reader in a thread takes more than a second (five: rows of data sets)',
        kept: missed.every(({ target }) => mostOf(target) < 100),
      },
    ],
    notes: [
      `${seconds} s of CPU time, seed ${seed}, load ${loadavg()[0]?.toFixed(1)}. CPU time of the better of two runs.`,
      ...missed.map(({ target, ms, input }) => `${Math.round(ms)} ms: ${JSON.stringify({ target, input })}`),
    ],
  };
}
