// The tasks of a file: submissions, bare tasks or rows of a data set, as JSON lines or Parquet. Or those of a folder: Harbor's task folders.

import { createHash } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { describeIssues, type Limits, submission } from '@millrace/protocol';
import { UsageError } from '../command/command.ts';
import { readHarborInput } from '../tasks/harbor-input.ts';
import { readRows } from './read-rows.ts';

export interface TaskLine {
  readonly scenario: string;
  readonly task: Readonly<Record<string, unknown>>;
  readonly limits: Limits;
  readonly id: string | undefined;
  /** The first is 1. */
  readonly number: number;
  /** Changes with the task. */
  readonly digest: string;
}

/** Throws a UsageError that names the line. */
export async function readTaskFile(path: string, scenario: string): Promise<TaskLine[]> {
  const rows = (await isFolder(path)) ? await readFolders(path) : await readRows(path);
  if (rows.length === 0) throw new UsageError(`${path} has no task`);
  return rows.map((row, at) => {
    const whole = 'task' in row ? { scenario, ...row } : { scenario, task: row };
    const parsed = submission.safeParse(whole);
    if (!parsed.success)
      throw new UsageError(`${path}, task ${at + 1}: ${describeIssues(parsed.error.issues, { value: whole, schema: submission })}`);
    const { scenario: name, task, limits, id } = parsed.data;
    const digest = createHash('sha256')
      .update(JSON.stringify([name, task]))
      .digest('hex')
      .slice(0, 24);
    return { scenario: name, task, limits, id, number: at + 1, digest };
  });
}

async function isFolder(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isDirectory(),
    () => false, // reading it says why
  );
}

async function readFolders(path: string): Promise<Record<string, unknown>[]> {
  const { content } = await readHarborInput([path]);
  return content
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line));
}

export function nameOf({ task, id, number }: TaskLine): string {
  const { instance_id: instanceId, folder } = task;
  if (typeof instanceId === 'string' && instanceId !== '') return instanceId;
  return id ?? (typeof folder === 'string' ? basename(folder) : `task ${number}`);
}
