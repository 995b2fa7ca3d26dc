// A span of a trace, as the parts that do the work see it. What exports spans is loaded only where traces are on; elsewhere there is no span,
// and nothing is measured.

export type SpanAttributes = Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>;

export interface SpanStart {
  readonly name: string;
  /** A call to another service. */
  readonly isCall?: boolean;
  readonly attributes?: SpanAttributes;
}

export interface TraceSpan {
  readonly traceId: string;
  /** A span below this one. */
  begin(start: SpanStart): TraceSpan;
  note(attributes: SpanAttributes): void;
  /** `errorType` names what failed: a code, or the name of a class. */
  end(errorType?: string): void;
}

export interface Tracing extends AsyncDisposable {
  /** The root of a new trace; undefined if this one is not sampled. */
  beginTrace(start: SpanStart): TraceSpan | undefined;
}

/** Ends the span with the work, and says how it failed. */
export async function inSpan<T>(span: TraceSpan | undefined, work: (span: TraceSpan | undefined) => Promise<T>): Promise<T> {
  if (span === undefined) return await work(undefined);
  try {
    const value = await work(span);
    span.end();
    return value;
  } catch (error) {
    span.end(errorTypeOf(error));
    throw error;
  }
}

export function errorTypeOf(error: unknown): string {
  if (error instanceof Error && 'code' in error && typeof error.code === 'string') return error.code;
  return error instanceof Error ? error.name : 'unknown';
}
