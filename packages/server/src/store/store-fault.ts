// The error of a store whose storage failed: a full disk, an I/O error, a file that stays locked.

import { RolloutError } from '@millrace/protocol';

/** Nothing was written. The same call may succeed later; any other error of a write comes back every time. */
export class StoreFault extends RolloutError {
  constructor(message: string) {
    super('internal', message);
    this.name = 'StoreFault';
  }
}
