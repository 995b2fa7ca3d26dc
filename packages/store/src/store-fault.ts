// The errors of a store: what its storage refused, and what it did not expect. Their messages name the file, so they are for logs;
// `publicMessage` is for callers.

import { RolloutError } from '@millrace/protocol';

export class StoreError extends RolloutError {
  readonly publicMessage: string;

  constructor(message: string, publicMessage: string) {
    super('internal', message);
    this.name = 'StoreError';
    this.publicMessage = publicMessage;
  }
}

/**
 * The storage failed: a full disk, an I/O error, a file that stays locked, a database that cannot be reached. Nothing was written,
 * unless `isUnknown` is set. The same call may succeed later; any other error of a write comes back every time.
 */
export class StoreFault extends StoreError {
  override readonly name = 'StoreFault';
  /** The disk had no space left. */
  readonly isDiskFull: boolean;
  /** The reply to a commit was lost: it may have been written. Repeating the call is safe. */
  readonly isUnknown: boolean;

  constructor(message: string, publicMessage: string, options: { readonly isDiskFull?: boolean; readonly isUnknown?: boolean } = {}) {
    super(message, publicMessage);
    this.isDiskFull = options.isDiskFull ?? false;
    this.isUnknown = options.isUnknown ?? false;
  }
}
