// What the service refused in a submission, named by file and line: `tasks.jsonl:17: task.answer: expected string`.

import { RolloutError } from '@millrace/protocol';
import { z } from 'zod';

export interface FaultPlace {
  readonly source: string;
  /** The line of each submission of the file. */
  readonly lines: readonly number[];
  /** How many submissions of the file came before the refused request. */
  readonly offset: number;
  /** What each line stands for, if it is not a line of a file. */
  readonly names?: readonly string[];
}

const fault = z.object({ index: z.int().optional(), path: z.string().default(''), message: z.string() });
const faults = z.array(fault);
const itemPath = /^(?:rollouts|tasks)\[(\d+)\]\.?/;

/** The same error with places that the user can open in an editor; other errors are returned unchanged. */
export function locateFaults(error: unknown, place: FaultPlace): unknown {
  if (!(error instanceof RolloutError) || error.blame !== 'caller') return error;
  const { code, details } = error;
  const parsed = faults.safeParse(details?.faults);
  const named = parsed.success ? parsed.data.map((one) => renderFault(one, place)) : [];
  const message = named.length > 0 && named.every((line) => line !== undefined) ? named.join('\n') : relocate(error.message, place);
  return new RolloutError(code, message, { cause: error, ...(details === undefined ? {} : { details }) });
}

function renderFault({ index, path, message }: z.infer<typeof fault>, place: FaultPlace): string | undefined {
  const [prefix = '', found] = itemPath.exec(path) ?? [];
  const at = toPlace(index ?? (found === undefined ? undefined : Number(found)), place);
  if (at === undefined) return undefined;
  const field = path.slice(prefix.length);
  return `${at}: ${field === '' ? '' : `${field}: `}${message}`;
}

/** A message without a list of faults still names indexes. */
function relocate(message: string, place: FaultPlace): string {
  return message.replace(/\b(?:rollouts|tasks)\[(\d+)\](\.|: )?/g, (whole, index: string) => {
    const at = toPlace(Number(index), place);
    return at === undefined ? whole : `${at}: `;
  });
}

function toPlace(index: number | undefined, { source, lines, offset, names }: FaultPlace): string | undefined {
  const line = index === undefined ? undefined : lines[offset + index];
  return line === undefined ? undefined : (names?.[line - 1] ?? `${source}:${line}`);
}
