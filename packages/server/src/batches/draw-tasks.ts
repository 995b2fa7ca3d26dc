// Draws the next tasks of a batch: first from its queue, then from its file. A line of the file that the scenario rejects is
// skipped with one `task-skip` event; a full round of such lines ends the file.

import { messageOf, RolloutError, type TaskSource } from '@millrace/protocol';
import { type Scenarios, safeParseTask } from '@millrace/scenarios';
import type { BatchPlan, NewGroup, OpenBatch, Store, Task } from '@millrace/store';
import type { DrawnLine, TaskFiles } from './task-files.ts';

export interface DrawDeps {
  readonly store: Store;
  readonly files: TaskFiles;
  readonly scenarios: Scenarios;
}

interface DrawnTask {
  readonly task: Task;
  readonly from: NewGroup['from'];
}

export async function* drawTasks(batch: OpenBatch, most: number, deps: DrawDeps): AsyncGenerator<DrawnTask> {
  const queued = batch.waiting === 0 ? [] : await deps.store.queuedTasks(batch.id, most);
  for (const { task } of queued) yield { task, from: { kind: 'queue' } };
  const { source } = batch.plan;
  if (source === undefined || queued.length >= most) return;
  const fault = await findSourceFault(batch.plan, deps.files);
  if (fault !== undefined) throw new RolloutError('bad-request', fault);
  const name = cursorName(batch);
  let at = await deps.store.cursor(name);
  for (let count = queued.length; count < most; count += 1) {
    const drawn = await drawLine(batch, source, { ...deps, at });
    if (drawn === undefined) return;
    yield { task: drawn.task, from: { kind: 'cursor', name, at, to: drawn.to } };
    at = drawn.to;
  }
}

function cursorName({ plan }: Pick<OpenBatch, 'plan'>): string {
  return plan.source?.cursor ?? plan.series ?? plan.source?.file ?? '';
}

async function drawLine(
  batch: OpenBatch,
  source: TaskSource,
  { at, ...deps }: DrawDeps & { readonly at: number },
): Promise<{ task: Task; to: number } | undefined> {
  const cursor = JSON.stringify([batch.plan.scenario, source.file, cursorName(batch)]);
  if (deps.files.isSpent(cursor, at)) return undefined;
  const round = await deps.files.count(source.file);
  for (let position = at; position < at + round; position += 1) {
    const line = await deps.files.read(source, position);
    if (line === undefined) break;
    const read = await readTask(line, batch.plan.scenario, deps.scenarios);
    if (read.task !== undefined) return { task: read.task, to: position + 1 };
    const data = { batch: batch.id, file: source.file, line: line.line, message: read.fault };
    await deps.store.appendEvents([{ kind: 'task-skip', data }]);
  }
  deps.files.markSpent(cursor, at);
  return undefined;
}

type TaskReading = { readonly task: Task; readonly fault?: undefined } | { readonly task?: undefined; readonly fault: string };

async function readTask({ text }: DrawnLine, scenario: string, scenarios: Scenarios): Promise<TaskReading> {
  let task: unknown;
  try {
    task = JSON.parse(text);
  } catch (error) {
    return { fault: messageOf(error) };
  }
  if (!isTask(task)) return { fault: 'not a JSON object' };
  const found = scenarios.get(scenario);
  const parsed = found && (await safeParseTask(found, task));
  if (parsed?.success) return { task };
  return {
    fault: parsed?.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`).join('; ') ?? `no scenario ${scenario}`,
  };
}

function isTask(value: unknown): value is Task {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Why this server cannot draw from the file of a batch. A cursor counts lines, so it means the same only in a file with the same
 * content as that of the server that accepted the batch.
 */
export async function findSourceFault({ source, source_digest }: BatchPlan, files: TaskFiles): Promise<string | undefined> {
  if (source === undefined) return undefined;
  const shown = JSON.stringify(source.file);
  const advice = 'give every server the same file, or cancel the batch';
  if (!files.has(source.file)) return `this server has no task file named ${shown}: ${advice}`;
  try {
    const digest = await files.digest(source.file);
    if (source_digest === undefined || digest === source_digest) return undefined;
    return `the task file ${shown} of this server differs from the one that the batch began with: ${advice}`;
  } catch (error) {
    return `this server cannot read its task file ${shown}: ${messageOf(error)}: ${advice}`;
  }
}

/** Throws when the file is unknown, cannot be read, or has no valid task at the cursor. */
export async function checkSource(batch: Pick<OpenBatch, 'plan'>, deps: DrawDeps): Promise<void> {
  const { source, scenario } = batch.plan;
  if (source === undefined) return;
  const known = deps.files.names();
  if (!deps.files.has(source.file))
    throw new RolloutError(
      'bad-request',
      `source.file: no task file is named ${JSON.stringify(source.file)}; known: ${known.join(', ') || 'none'}`,
    );
  const line = await deps.files.read(source, await deps.store.cursor(cursorName(batch))).catch((error: unknown) => {
    throw new RolloutError('bad-request', `source.file: ${source.file} cannot be read: ${messageOf(error)}`);
  });
  if (line === undefined) throw new RolloutError('bad-request', `source.file: ${source.file} has no tasks left for this cursor`);
  const { fault } = await readTask(line, scenario, deps.scenarios);
  if (fault !== undefined) throw new RolloutError('task-invalid', `source.file: line ${line.line} of ${source.file}: ${fault}`);
}
