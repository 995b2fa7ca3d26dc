// Checks what a caller sent, and reports where each fault is: `rollouts[3].limits.max_turn: unknown field`.

import {
  type CheckedValue,
  definedOf,
  type ErrorCode,
  messageOf,
  mostFaults,
  type RequestFault,
  RolloutError,
  type Schema,
  type SchemaIssue,
  toFieldFaults,
} from '@millrace/protocol';

/** In the message; `details.faults` has more. */
const mostNamed = 20;

interface Where {
  /** The path of the value inside the request. */
  readonly at?: readonly PropertyKey[];
  readonly code?: ErrorCode;
  /** The schema whose fields are suggested; the one that checks by default. */
  readonly fields?: unknown;
}

/** The parsed value, or a RolloutError that names every field at fault. */
export async function check<T>(schema: Pick<Schema<T>, 'safeParseAsync'>, value: unknown, where: Where = {}): Promise<T> {
  const { at = [], code = 'bad-request', fields = schema } = where;
  const parsed = await schema.safeParseAsync(value).catch((error: unknown) => {
    // The library collects a fault for each item of a list, and fails with more of them than the stack can hold.
    if (error instanceof RangeError) throw toFaultError([toFault(at, 'has too many faults to list')], { code });
    throw error;
  });
  if (parsed.success) return parsed.data;
  const { issues } = parsed.error;
  const count = issues.reduce((sum, { keys }) => sum + (keys?.length ?? 1), 0);
  throw toFaultError(
    issues.slice(0, mostNamed).flatMap((issue) => toFaults(issue, { value, schema: fields }, at)),
    { code, count },
  );
}

function renderPath(path: readonly PropertyKey[]): string {
  return path.map((part, index) => (typeof part === 'number' ? `[${part}]` : index === 0 ? String(part) : `.${String(part)}`)).join('');
}

export function toFault(at: readonly PropertyKey[], message: string): RequestFault {
  const index = at.find((part) => typeof part === 'number');
  return definedOf({ index, path: renderPath(at), message });
}

interface FaultErrorOptions {
  readonly code: ErrorCode;
  readonly details?: Record<string, unknown>;
  /** How many faults there are, if the list was cut. */
  readonly count?: number;
}

export function toFaultError(faults: readonly RequestFault[], { code, details = {}, count }: FaultErrorOptions): RolloutError {
  const shown = faults.slice(0, mostFaults).map((fault) => ({ ...fault, path: cut(fault.path), message: cut(fault.message) }));
  const named = shown.slice(0, mostNamed).map(({ path, message }) => (path === '' ? message : `${path}: ${message}`));
  const more = faults.length > mostNamed ? [`and ${faults.length - mostNamed} more`] : [];
  return new RolloutError(code, [...named, ...more].join('; '), {
    details: { ...details, faults: shown, fault_count: count ?? faults.length },
  });
}

/** Checks many items and reports their faults together, in one error with the code and details of the first. */
export class FaultCollector {
  #first: RolloutError | undefined;
  readonly #faults: RequestFault[] = [];
  #count = 0;

  /** True once more faults would not be shown. */
  get isFull(): boolean {
    return this.#faults.length >= mostFaults;
  }

  /** The result of `work`; absent if it threw a RolloutError, which is collected. */
  async collect<T>(at: readonly PropertyKey[], work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof RolloutError)) throw error;
      this.#first ??= error;
      const faults = (error.details?.faults as readonly RequestFault[] | undefined) ?? [toFault(at, messageOf(error))];
      this.#faults.push(...faults);
      this.#count += Number(error.details?.fault_count ?? faults.length);
      return undefined;
    }
  }

  throwIfAny(): void {
    if (this.#first === undefined) return;
    const { code, details } = this.#first;
    throw toFaultError(this.#faults, definedOf({ code, details, count: this.#count }));
  }
}

function toFaults(issue: SchemaIssue, checked: CheckedValue, at: readonly PropertyKey[]): RequestFault[] {
  return toFieldFaults(issue, checked, mostNamed).map(({ path, message }) => toFault([...at, ...path], message));
}

/** A field name comes from the caller and may be megabytes long. */
function cut(text: string): string {
  return text.length > 300 ? `${text.slice(0, 300)}…` : text;
}
