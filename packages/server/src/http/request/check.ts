// Checks what a caller sent, and says of each fault where it is: `rollouts[3].limits.max_turn: unknown field`.

import { type ErrorCode, RolloutError, type Schema, type SchemaIssue } from '@millrace/protocol';

const mostFaults = 20;

interface Where {
  /** The path of the value inside the request. */
  readonly at?: readonly PropertyKey[];
  readonly code?: ErrorCode;
}

/** The parsed value, or a RolloutError that names every field at fault. */
export async function check<T>(schema: Schema<T>, value: unknown, where: Where = {}): Promise<T> {
  const parsed = await schema.safeParseAsync(value);
  if (parsed.success) return parsed.data;
  throw toFault(
    parsed.error.issues.flatMap((issue) => toFaults(issue, where.at ?? [])),
    where.code ?? 'bad-request',
  );
}

export function renderPath(path: readonly PropertyKey[]): string {
  return path.map((part, index) => (typeof part === 'number' ? `[${part}]` : index === 0 ? String(part) : `.${String(part)}`)).join('');
}

interface Fault {
  readonly path: string;
  readonly message: string;
}

function toFaults(issue: SchemaIssue, at: readonly PropertyKey[]): Fault[] {
  const path = [...at, ...issue.path];
  if (issue.code !== 'unrecognized_keys' || !issue.keys) return [{ path: renderPath(path), message: issue.message }];
  return issue.keys.map((key) => ({ path: renderPath([...path, key]), message: 'unknown field' }));
}

function toFault(faults: readonly Fault[], code: ErrorCode): RolloutError {
  const shown = faults.slice(0, mostFaults).map(({ path, message }) => ({ path: cut(path), message: cut(message) }));
  const text = shown.map(({ path, message }) => (path === '' ? message : `${path}: ${message}`)).join('; ');
  return new RolloutError(code, text, { details: { faults: shown, fault_count: faults.length } });
}

/** A field's name comes from the caller and may be megabytes long. */
function cut(text: string): string {
  return text.length > 300 ? `${text.slice(0, 300)}…` : text;
}
