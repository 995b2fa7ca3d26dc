// The report of an evaluation as one JSON file: its numbers, and every task with its samples.

import { rename, writeFile } from 'node:fs/promises';
import type { Client } from '@millrace/client';
import type { EvaluationTask, EvaluationView } from '@millrace/protocol';

/** Written next to its place and renamed, so that no reader sees half of it. */
export async function writeReport(client: Client, evaluation: EvaluationView, path: string): Promise<void> {
  const results: EvaluationTask[] = [];
  for await (const task of client.evaluations.tasks(evaluation.id)) results.push(task);
  const partial = `${path}.${process.pid}.partial`;
  await writeFile(partial, `${JSON.stringify({ ...evaluation, results }, undefined, 2)}\n`);
  await rename(partial, path);
}
