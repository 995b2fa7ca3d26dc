// From JSON lines to submissions: all of them, or a list of what is wrong with each bad line by its number.

import { messageOf, type SubmissionInput, submission } from '@millrace/protocol';

export interface InputOptions {
  /** For lines that name none. Lines without a `task` field are then bare tasks. */
  readonly scenario?: string;
  /** How many rollouts each line becomes; more than one makes them a group. */
  readonly repeat: number;
  /** Begins the names of groups that are made here. */
  readonly prefix: string;
}

export interface BadLine {
  readonly line: number;
  readonly reason: string;
}

export type Input =
  | { readonly kind: 'good'; readonly submissions: readonly SubmissionInput[]; readonly lines: readonly number[] }
  | { readonly kind: 'bad'; readonly bad: readonly BadLine[] };

export function parseInput(text: string, options: InputOptions): Input {
  const submissions: SubmissionInput[] = [];
  const lines: number[] = [];
  const bad: BadLine[] = [];
  const seen = new Map<string, number>();
  for (const [index, content] of text
    .replace(/^\ufeff/, '')
    .split('\n')
    .entries()) {
    if (content.trim() === '') continue;
    const line = index + 1;
    const parsed = parseLine(content, options);
    const first = 'id' in parsed && parsed.id !== undefined ? seen.get(parsed.id) : undefined;
    if ('reason' in parsed) bad.push({ line, reason: parsed.reason });
    else if (first !== undefined) bad.push({ line, reason: `id ${parsed.id} is already on line ${first}` });
    else {
      if (parsed.id !== undefined) seen.set(parsed.id, line);
      for (const one of repeatLine(parsed, line, options)) {
        submissions.push(one);
        lines.push(line);
      }
    }
  }
  return bad.length > 0 ? { kind: 'bad', bad } : { kind: 'good', submissions, lines };
}

export function renderBadLines(bad: readonly BadLine[], source: string): string {
  const shown = bad.slice(0, 10).map(({ line, reason }) => `  ${source}:${line}: ${reason}`);
  const more = bad.length > 10 ? [`  and ${bad.length - 10} more`] : [];
  return [`nothing was submitted: ${bad.length} bad ${bad.length === 1 ? 'line' : 'lines'}`, ...shown, ...more].join('\n');
}

function parseLine(content: string, options: InputOptions): SubmissionInput | { readonly reason: string } {
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
  if (!parsed.success) return { reason: toReason(parsed.error.issues, scenario) };
  if (parsed.data.id !== undefined && parsed.data.id.length > 118 && options.repeat > 1) return { reason: 'id is too long to be repeated' };
  // What was written goes out, not what was read: defaults are the service's to fill.
  return { ...toWritten(whole), scenario: parsed.data.scenario, task: parsed.data.task };
}

function toWritten(whole: object): Partial<SubmissionInput> {
  return whole;
}

function toReason(
  issues: readonly { readonly path: readonly PropertyKey[]; readonly message: string }[],
  scenario: string | undefined,
): string {
  const [issue] = issues;
  const field = issue?.path.join('.') ?? '';
  const hint = field === 'scenario' && scenario === undefined ? ' (or give --scenario)' : '';
  return `${field === '' ? '' : `${field}: `}${issue?.message ?? 'not a submission'}${hint}`;
}

function repeatLine(one: SubmissionInput, line: number, options: InputOptions): SubmissionInput[] {
  if (options.repeat === 1) return [one];
  const group = one.group ?? one.id ?? `${options.prefix}-${line}`;
  return Array.from({ length: options.repeat }, (_, n) => ({
    ...one,
    group,
    ...(one.id === undefined ? {} : { id: `${one.id}-${n + 1}` }),
  }));
}
