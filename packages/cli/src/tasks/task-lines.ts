// From JSON lines to submissions. Each bad line is named by its number.

import { describeIssues, messageOf, type SubmissionInput, submission } from '@millrace/protocol';
import { UsageError } from '../command/command.ts';
import type { LineFault } from './faults.ts';
import type { SamplingFields } from './sampling-options.ts';

export interface LineOptions {
  /** For lines that name none. Lines without a `task` field are then bare tasks. */
  readonly scenario?: string;
  /** How many rollouts each line becomes; more than one makes them a group. */
  readonly siblings: number;
  /** The names of groups that are made here begin with it. */
  readonly prefix: string;
  /** Set on every line, over what the line says. */
  readonly fields?: SamplingFields;
}

export interface TaskLines {
  readonly submissions: readonly SubmissionInput[];
  /** `lines[i]` is the line number of `submissions[i]`. */
  readonly lines: readonly number[];
  readonly bad: readonly LineFault[];
}

export function parseTaskLines(text: string, options: LineOptions): TaskLines {
  const submissions: SubmissionInput[] = [];
  const lines: number[] = [];
  const bad: LineFault[] = [];
  const seen = new Map<string, number>();
  const contents = text.replace(/^\ufeff/, '').split('\n');
  for (const [index, content] of contents.entries()) {
    if (content.trim() === '') continue;
    const line = index + 1;
    const parsed = parseLine(content, options);
    const first = 'id' in parsed && parsed.id !== undefined ? seen.get(parsed.id) : undefined;
    if ('reason' in parsed) bad.push({ line, reason: parsed.reason });
    else if (first !== undefined) bad.push({ line, reason: `id ${parsed.id} is already on line ${first}` });
    else {
      if (parsed.id !== undefined) seen.set(parsed.id, line);
      for (const one of toSiblings(parsed, line, options)) {
        submissions.push(one);
        lines.push(line);
      }
    }
  }
  return { submissions, lines, bad };
}

/** A name that every line overrides would be ignored, misspelt or not. */
export function checkScenarioOption(named: string | undefined, { submissions }: Pick<TaskLines, 'submissions'>, source: string): void {
  const used = [...new Set(submissions.map(({ scenario }) => scenario))];
  if (named === undefined || used.length === 0 || used.includes(named)) return;
  const names = used.join(', ');
  throw new UsageError(`--scenario ${named} is for lines that name none, and every line of ${source} names its own: ${names}`);
}

function parseLine(content: string, options: LineOptions): SubmissionInput | { readonly reason: string } {
  let value: unknown;
  try {
    value = JSON.parse(content);
  } catch (error) {
    return { reason: `not JSON: ${messageOf(error)}` };
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return { reason: 'not a JSON object' };
  const { scenario } = options;
  const whole = scenario === undefined ? value : 'task' in value ? { scenario, ...value } : { scenario, task: value };
  const parsed = submission.safeParse(whole);
  if (!parsed.success) {
    const reason = describeIssues(parsed.error.issues, { value: whole, schema: submission });
    return { reason: scenario === undefined ? reason.replace(/^scenario: is missing/, '$& (or use --scenario)') : reason };
  }
  if (parsed.data.id !== undefined && parsed.data.id.length > 118 && options.siblings > 1)
    return { reason: 'id is too long: siblings add a number to it' };
  // The line is sent as written: the service fills in the defaults.
  return withFields({ ...toWritten(whole), scenario: parsed.data.scenario, task: parsed.data.task }, options.fields);
}

function withFields(one: SubmissionInput, fields: SamplingFields = {}): SubmissionInput {
  return {
    ...one,
    ...(fields.sampling === undefined ? {} : { sampling: { ...one.sampling, ...fields.sampling } }),
    ...(fields.limits === undefined ? {} : { limits: { ...one.limits, ...fields.limits } }),
  };
}

function toWritten(whole: object): Partial<SubmissionInput> {
  return whole;
}

function toSiblings(one: SubmissionInput, line: number, options: LineOptions): SubmissionInput[] {
  if (options.siblings === 1) return [one];
  const group = one.group ?? one.id ?? `${options.prefix}-${line}`;
  return Array.from({ length: options.siblings }, (_, n) => ({
    ...one,
    group,
    ...(one.id === undefined ? {} : { id: `${one.id}-${n + 1}` }),
  }));
}
