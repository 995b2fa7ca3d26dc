// What is wrong in a file of tasks, named by file and line: `tasks.jsonl:17: task.answer: is missing`. Lines with the same fault are
// named together, so that every one of them is named.

import { type RequestFault, RolloutError, requestFaults } from '@millrace/protocol';
import { toCount } from '../terminal/text.ts';

export interface LineFault {
  readonly line: number;
  readonly reason: string;
}

interface FaultPlace {
  readonly source: string;
  /** The line of each submission of the file. */
  readonly lines: readonly number[];
  /** What each line stands for, if it is not a line of a file. */
  readonly names?: readonly string[];
}

const mostSpans = 20;

/** One row for each kind of fault, in the order of their first lines. */
export function renderFaults(faults: readonly LineFault[], { source, names }: Pick<FaultPlace, 'source' | 'names'>): string[] {
  const linesByReason = new Map<string, Set<number>>();
  for (const { line, reason } of faults.toSorted((a, b) => a.line - b.line))
    linesByReason.set(reason, (linesByReason.get(reason) ?? new Set()).add(line));
  return [...linesByReason].flatMap(([reason, lines]) =>
    names === undefined
      ? [`  ${source}:${renderLines([...lines])}: ${reason}`]
      : [...lines].map((line) => `  ${names[line - 1] ?? `${source}:${line}`}: ${reason}`),
  );
}

/** `3, 5-9 and 12`; at most twenty of them. */
function renderLines(lines: readonly number[]): string {
  const spans: { first: number; last: number }[] = [];
  for (const line of lines) {
    const open = spans.at(-1);
    if (open !== undefined && open.last === line - 1) open.last = line;
    else spans.push({ first: line, last: line });
  }
  const shown = spans.slice(0, mostSpans).map(({ first, last }) => (first === last ? String(first) : `${first}-${last}`));
  const left = spans.slice(mostSpans).reduce((sum, { first, last }) => sum + last - first + 1, 0);
  return `${shown.join(', ')}${left > 0 ? ` and ${toCount(left)} more lines` : ''}`;
}

export function toReason({ path, message }: Pick<RequestFault, 'path' | 'message'>): string {
  return path === '' ? message : `${path}: ${message}`;
}

const itemPath = /^(?:rollouts|tasks)\[(\d+)\]\.?/;

/** The same error with places that the user can open in an editor; other errors are returned unchanged. */
export function locateFaults(error: unknown, place: FaultPlace): unknown {
  if (!(error instanceof RolloutError) || error.blame !== 'caller') return error;
  const { code, details } = error;
  const parsed = requestFaults.safeParse(details?.faults);
  const located = (parsed.data ?? []).map((fault) => locate(fault, place));
  const faults = located.filter((fault) => fault !== undefined);
  const isWhole = faults.length > 0 && faults.length === located.length;
  const message = isWhole ? renderFaults(faults, place).join('\n').trimStart() : relocate(error.message, place);
  return new RolloutError(code, message, { cause: error, ...(details === undefined ? {} : { details }) });
}

function locate({ index, path, message }: RequestFault, { lines }: FaultPlace): LineFault | undefined {
  const [prefix = '', found] = itemPath.exec(path) ?? [];
  const line = lines[index ?? Number(found ?? -1)];
  return line === undefined ? undefined : { line, reason: toReason({ path: path.slice(prefix.length), message }) };
}

/** A message without a list of faults still names indexes. */
function relocate(message: string, { source, lines, names }: FaultPlace): string {
  return message.replace(/\b(?:rollouts|tasks)\[(\d+)\](\.|: )?/g, (whole, index: string) => {
    const line = lines[Number(index)];
    return line === undefined ? whole : `${names?.[line - 1] ?? `${source}:${line}`}: `;
  });
}
