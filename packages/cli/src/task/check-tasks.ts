// Checks tasks: the solution of each must be right, nothing must be wrong, and verdicts must not change between runs. What is finished is
// kept in a file, so that the next run continues.

import { appendFile, readFile } from 'node:fs/promises';
import { messageOf, tryJson } from '@millrace/protocol';
import { safeParseTask } from '@millrace/scenarios';
import { z } from 'zod';
import type { PlayDeps } from '../attack/play.ts';
import { type CandidateVerdict, type CheckCandidate, candidates, judgeOnce } from './judge-candidate.ts';
import { nameOf, type TaskLine } from './task-file.ts';

const outcomes = ['right', 'gold_fails', 'empty_passes', 'wrong_passes', 'flaky', 'broken'] as const;

const changedVerdict = z.object({
  candidate: z.enum(candidates),
  verdicts: z.array(z.object({ reward: z.number().nullable(), times: z.number(), why: z.string().optional() })),
});
type ChangedVerdict = z.infer<typeof changedVerdict>;

const checkedTask = z.object({
  digest: z.string(),
  task: z.string(),
  outcome: z.enum(outcomes),
  why: z.string().optional(),
  /** Tests that passed in some runs of the solution only. */
  flaky: z.array(z.string()).default([]),
  /** What is doubtful about the task itself. */
  warnings: z.array(z.string()).default([]),
  /** What was judged differently between runs. */
  changed: z.array(changedVerdict).default([]),
  repeats: z.number(),
  busy: z.boolean().default(false),
  ms: z.number(),
});
export type CheckedTask = z.infer<typeof checkedTask>;

export interface CheckOptions {
  readonly deps: PlayDeps;
  /** How often each candidate is judged. */
  readonly repeats: number;
  /** Whether the machine is kept busy meanwhile. */
  readonly busy: boolean;
  readonly parallel: number;
  /** Where results are kept. */
  readonly journal: string;
  readonly signal: AbortSignal;
  onChecked(checked: CheckedTask): void;
}

/** What an earlier run finished with at least as many repeats, by digest. A line that was cut off is ignored. */
export async function readJournal(path: string, wanted: Pick<CheckOptions, 'repeats' | 'busy'>): Promise<Map<string, CheckedTask>> {
  const text = await readFile(path, 'utf8').catch(() => ''); // the first run
  const found = new Map<string, CheckedTask>();
  for (const line of text.split('\n')) {
    const parsed = checkedTask.safeParse(tryJson(line));
    if (parsed.success && parsed.data.repeats >= wanted.repeats && (parsed.data.busy || !wanted.busy))
      found.set(parsed.data.digest, parsed.data);
  }
  return found;
}

/** Resolves when every task is checked, or when the signal aborts. */
export async function checkTasks(lines: readonly TaskLine[], options: CheckOptions): Promise<void> {
  const waiting = [...lines];
  const work = async () => {
    for (let line = waiting.shift(); line && !options.signal.aborted; line = waiting.shift()) {
      const checked = await checkTask(line, options);
      if (options.signal.aborted) return;
      await appendFile(options.journal, `${JSON.stringify(checked)}\n`);
      options.onChecked(checked);
    }
  };
  await Promise.all(Array.from({ length: options.parallel }, work));
}

async function checkTask(line: TaskLine, options: CheckOptions): Promise<CheckedTask> {
  const startMs = performance.now();
  const { repeats, busy } = options;
  const failed = (error: unknown): Judged => ({ outcome: 'broken', why: messageOf(error), flaky: [], changed: [] });
  const result = await judge(line, options).catch(failed);
  const ms = Math.round(performance.now() - startMs);
  return { digest: line.digest, task: nameOf(line), repeats, busy, ms, warnings: await readWarnings(line, options), ...result };
}

/** None of a task that cannot be read: its outcome says why. */
async function readWarnings({ scenario: name, task }: TaskLine, { deps }: CheckOptions): Promise<string[]> {
  const scenario = deps.scenarios.get(name);
  const parsed = scenario && (await safeParseTask(scenario, task));
  return parsed?.success ? [...((await scenario?.warnings?.(parsed.data)) ?? [])] : [];
}

type Judged = Pick<CheckedTask, 'outcome' | 'flaky' | 'changed'> & { readonly why?: string };

/** A wrong solution is judged only where verdicts are compared: it is there to change. */
async function judge(line: TaskLine, { deps, repeats, signal }: CheckOptions): Promise<Judged> {
  const runs: Record<CheckCandidate, CandidateVerdict[]> = { solution: [], empty: [], wrong: [] };
  for (let run = 0; run < repeats; run += 1) {
    for (const candidate of candidates) {
      if (candidate === 'wrong' && repeats === 1) continue;
      const verdict = await judgeOnce(deps, line, { candidate, signal });
      if (verdict) runs[candidate].push(verdict);
      if (repeats === 1 && candidate === 'solution' && verdict?.isRight === false) break; // what is wrong with it is known
    }
  }
  return toJudged(runs);
}

function toJudged(runs: Record<CheckCandidate, CandidateVerdict[]>): Judged {
  const flaky = findFlaky(runs.solution);
  const changed = candidates.flatMap((candidate) => findChanged(candidate, runs[candidate]));
  const found = (outcome: Judged['outcome'], why: string): Judged => ({ outcome, why, flaky, changed });
  if (flaky.length > 0) return found('flaky', `${flaky.length} tests differ between runs`);
  if (changed.length > 0) return found('flaky', changed.map(describeChange).join('; '));
  const lost = candidates.flatMap((candidate) => runs[candidate]).find(({ reward }) => reward === null);
  if (lost) return found('broken', lost.why ?? 'there is no verdict');
  const [solution, empty, wrong] = candidates.map((candidate) => runs[candidate][0]);
  if (solution && !solution.isRight) return found('gold_fails', solution.why ?? 'the solution does not pass');
  if (empty?.isRight) return found('empty_passes', 'the tests pass without any solution');
  if (wrong?.isRight) return found('wrong_passes', 'the tests pass with a wrong solution');
  return { outcome: 'right', flaky, changed };
}

/** Tests that passed in some runs, and not in others. */
export function findFlaky(runs: readonly Pick<CandidateVerdict, 'tests'>[]): string[] {
  const names = [...new Set(runs.flatMap(({ tests }) => Object.keys(tests)))];
  return names.filter((name) => new Set(runs.map(({ tests }) => tests[name] === true)).size > 1);
}

/** Empty, or the verdicts that differ, the most frequent first. */
function findChanged(candidate: CheckCandidate, runs: readonly CandidateVerdict[]): ChangedVerdict[] {
  const rewards = [...new Set(runs.map(({ reward }) => reward))];
  if (rewards.length < 2) return [];
  const verdicts = rewards.map((reward) => {
    const same = runs.filter((run) => run.reward === reward);
    const why = same.find((run) => run.why !== undefined)?.why;
    return { reward, times: same.length, ...(why === undefined ? {} : { why }) };
  });
  return [{ candidate, verdicts: verdicts.sort((a, b) => b.times - a.times) }];
}

const names: Readonly<Record<CheckCandidate, string>> = { solution: 'the solution', empty: 'an empty answer', wrong: 'a wrong answer' };

function describeChange({ candidate, verdicts }: ChangedVerdict): string {
  const seen = verdicts.map(
    ({ reward, times, why }) => `${reward ?? 'no reward'} ${times} ×${why === undefined ? '' : ` (${why.slice(0, 200)})`}`,
  );
  return `${names[candidate]} got ${seen.join(', ')}`;
}
