// A call that cannot be answered, with the kind that the worker decides by.

export type CallErrorKind = 'not-found' | 'too-large' | 'bad-call' | 'failed' | 'limit';

export class CallError extends Error {
  readonly kind: CallErrorKind;

  constructor(kind: CallErrorKind, message: string) {
    super(message);
    this.kind = kind;
  }
}
