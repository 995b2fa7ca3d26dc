// A call that failed, with the kind that the worker acts on.

import type { ExecutorErrorKind } from '@millrace/protocol';

export class CallError extends Error {
  readonly kind: ExecutorErrorKind;

  constructor(kind: ExecutorErrorKind, message: string) {
    super(message);
    this.kind = kind;
  }
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
