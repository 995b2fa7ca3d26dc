// What `millrace try` reads: a task, and the turns of a scripted policy. Errors name the file and the line.

import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { messageOf } from '@millrace/protocol';
import { z } from 'zod';
import { UsageError } from '../../command/command.ts';
import { renderCall } from '../local/scripted-backend.ts';

interface TaskInput {
  readonly task: unknown;
  /** Where it comes from, for people. */
  readonly from: string;
}

export interface TryPolicy {
  /** What the agent says, turn by turn. */
  readonly turns: readonly string[];
  readonly from: string;
}

/** JSON, or a file whose first line is a task or a submission; without either, tasks.jsonl next to the scenario. */
export async function readTask(given: string | undefined, scenario: string): Promise<TaskInput> {
  if (given?.trimStart().startsWith('{')) return { task: toTask(parseJson(given, '--task')), from: '--task' };
  const path = given ?? join(dirname(scenario), 'tasks.jsonl');
  if (given === undefined && !existsSync(path))
    throw new UsageError(`no --task was given, and there is no ${path}: give a file of tasks, or one as --task '{"question": "…"}'`);
  const [first] = await readLines(path, `${path} cannot be read`);
  if (first === undefined) throw new UsageError(`${path} has no task`);
  return { task: toTask(parseJson(first.text, `${path}:${first.line}`)), from: `${path}:${first.line}` };
}

/** Lines of `tasks.jsonl` are submissions, in which the task is a field. */
function toTask(value: unknown): unknown {
  const submission = z.object({ scenario: z.string(), task: z.unknown() }).safeParse(value);
  return submission.success && submission.data.task !== undefined ? submission.data.task : value;
}

const turn = z.strictObject({
  text: z.string().default(''),
  tool_calls: z.array(z.strictObject({ name: z.string().min(1), arguments: z.record(z.string(), z.unknown()).default({}) })).default([]),
});

/** A file of turns; without one, policy.jsonl next to the scenario, and without that an agent that says nothing. */
export async function readPolicy(given: string | undefined, scenario: string): Promise<TryPolicy> {
  const path = given ?? join(dirname(scenario), 'policy.jsonl');
  const lines = await readLines(path, `${path} cannot be read`).catch((error) => {
    if (given !== undefined) throw error;
    return undefined;
  });
  if (lines === undefined) return { turns: [], from: `an agent that says nothing, since there is no ${path}` };
  return { turns: lines.map(({ text, line }) => toText(parseJson(text, `${path}:${line}`), `${path}:${line}`)), from: path };
}

function toText(value: unknown, where: string): string {
  const parsed = turn.safeParse(value);
  if (!parsed.success) throw new UsageError(`${where} is not a turn of a policy:\n${z.prettifyError(parsed.error)}`);
  const { text, tool_calls } = parsed.data;
  return [text, ...tool_calls.map(({ name, arguments: args }) => renderCall(name, args))].filter((part) => part !== '').join('\n');
}

async function readLines(path: string, problem: string): Promise<{ readonly text: string; readonly line: number }[]> {
  const text = await readFile(path, 'utf8').catch((error) => {
    throw new UsageError(`${problem}: ${messageOf(error)}`);
  });
  return text.split('\n').flatMap((one, index) => (one.trim() === '' ? [] : [{ text: one, line: index + 1 }]));
}

function parseJson(text: string, where: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new UsageError(`${where} is not JSON: ${messageOf(error)}`);
  }
}
