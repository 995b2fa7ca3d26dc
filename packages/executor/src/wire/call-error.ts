// A call that failed, with the kind that the worker acts on.

import type { ExecutorErrorKind } from '@millrace/protocol';

export class CallError extends Error {
  readonly kind: ExecutorErrorKind;
  /** Of a limit: what the kernel said, such as ENOSPC. */
  readonly errno: string | undefined;

  constructor(kind: ExecutorErrorKind, message: string, cause?: unknown) {
    super(message);
    this.kind = kind;
    this.errno = errnoOf(cause);
  }
}

export function errnoOf(error: unknown): string | undefined {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return typeof code === 'string' ? code : undefined;
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
