// Checks tasks: the solution of each must be right, nothing must be wrong, and repeats must agree. What is finished is kept in a file, so
// that the next run continues.

import { appendFile, readFile } from 'node:fs/promises';
import { describeIssues, messageOf, tryJson } from '@millrace/protocol';
import type { LayerCache, Sandbox, SandboxDriver, SandboxSpec, Scenario, Scenarios, TaskTrial } from '@millrace/server';
import { z } from 'zod';
import { nameOf, type TaskLine } from './task-file.ts';

export const outcomes = ['right', 'gold_fails', 'empty_passes', 'flaky', 'broken'] as const;

export const checkedTask = z.object({
  digest: z.string(),
  task: z.string(),
  outcome: z.enum(outcomes),
  why: z.string().optional(),
  /** Tests that passed in some runs of the solution only. */
  flaky: z.array(z.string()).default([]),
  /** What is doubtful about the task itself. */
  warnings: z.array(z.string()).default([]),
  repeats: z.number(),
  ms: z.number(),
});
export type CheckedTask = z.infer<typeof checkedTask>;

export interface CheckOptions {
  readonly scenarios: Scenarios;
  /** Its sandboxes hold their layers. */
  readonly driver: SandboxDriver;
  readonly layers: LayerCache;
  /** How often the solution is judged. */
  readonly repeats: number;
  readonly parallel: number;
  /** Where results are kept. */
  readonly journal: string;
  readonly signal: AbortSignal;
  onChecked(checked: CheckedTask): void;
}

/** What an earlier run finished with at least as many repeats, by digest. A line that was cut off is ignored. */
export async function readJournal(path: string, repeats: number): Promise<Map<string, CheckedTask>> {
  const text = await readFile(path, 'utf8').catch(() => ''); // the first run
  const found = new Map<string, CheckedTask>();
  for (const line of text.split('\n')) {
    const parsed = checkedTask.safeParse(tryJson(line));
    if (parsed.success && parsed.data.repeats >= repeats) found.set(parsed.data.digest, parsed.data);
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
  const result = await judge(line, options).catch((error) => ({
    outcome: 'broken' as const,
    why: messageOf(error),
    flaky: [],
    warnings: [],
  }));
  const ms = Math.round(performance.now() - startMs);
  return { digest: line.digest, task: nameOf(line), repeats: options.repeats, ms, ...result };
}

type Judged = Pick<CheckedTask, 'outcome' | 'flaky' | 'warnings'> & { readonly why?: string };

async function judge(line: TaskLine, options: CheckOptions): Promise<Judged> {
  const scenario = options.scenarios.get(line.scenario);
  if (!scenario) throw new Error(`there is no scenario ${line.scenario}`);
  const parsed = await scenario.task.safeParseAsync(line.task);
  if (!parsed.success) throw new Error(describeIssues(parsed.error.issues));
  const task = parsed.data;
  const warnings = [...(scenario.warnings?.(task) ?? [])];
  const golds: TaskTrial[] = [];
  for (let run = 0; run < options.repeats; run += 1) golds.push(await runTrial(scenario, { line, task, solution: 'gold' }, options));
  const flaky = findFlaky(golds);
  const failed = golds.find(({ isRight }) => !isRight);
  if (flaky.length > 0 || (failed && golds.some(({ isRight }) => isRight)))
    return { outcome: 'flaky', flaky, warnings, why: `${flaky.length} tests differ between runs` };
  if (failed) return { outcome: 'gold_fails', flaky, warnings, why: failed.why ?? 'the solution does not pass' };
  const empty = await runTrial(scenario, { line, task, solution: 'empty' }, options);
  if (empty.isRight) return { outcome: 'empty_passes', flaky, warnings, why: 'the tests pass without any solution' };
  return { outcome: 'right', flaky, warnings };
}

/** Tests that passed in some runs, and not in others. */
export function findFlaky(runs: readonly TaskTrial[]): string[] {
  const names = [...new Set(runs.flatMap(({ tests }) => Object.keys(tests)))];
  return names.filter((name) => new Set(runs.map(({ tests }) => tests[name] === true)).size > 1);
}

interface Solving {
  readonly line: TaskLine;
  readonly task: unknown;
  readonly solution: 'gold' | 'empty';
}

async function runTrial(scenario: Scenario, solving: Solving, options: CheckOptions): Promise<TaskTrial> {
  if (!scenario.trial) throw new Error(`the scenario ${scenario.name} cannot check its tasks: it has no \`trial\``);
  const { task, solution, line } = solving;
  const { driver, signal } = options;
  await using opened = new AsyncDisposableStack();
  const openSandbox = async (spec?: SandboxSpec) =>
    opened.use(await driver.open(spec ?? (await scenario.sandbox?.(task)) ?? {}, { signal }));
  const openPrepared = async () => opened.use(await openWithLayer(scenario, solving, options));
  return await scenario.trial({ task, solution, openSandbox, openPrepared, limits: line.limits, signal });
}

/** What \`prepare\` does for several tasks is done once. */
async function openWithLayer(scenario: Scenario, { task, line }: Solving, { driver, layers, signal }: CheckOptions): Promise<Sandbox> {
  const spec = (await scenario.sandbox?.(task)) ?? {};
  const prepare = async (sandbox: Sandbox) => scenario.prepare?.run({ task, sandbox, limits: line.limits, signal });
  const key = await scenario.prepare?.key(task);
  const plan = { spec, key: JSON.stringify([scenario.name, key]), prepare, signal, uncharged: <T>(wait: () => Promise<T>) => wait() };
  await using layer = key === undefined ? undefined : await layers.open(plan); // the sandbox holds it from its start
  const sandbox = await driver.open({ ...spec, ...(layer && { layer: layer.folder }) }, { signal });
  if (layer === undefined) await prepare(sandbox);
  return sandbox;
}
