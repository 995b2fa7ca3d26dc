// The error of a reply that is not exactly consistent.

import { RolloutError } from '@millrace/protocol';

export function refuse(what: string): RolloutError {
  return new RolloutError('backend-bad-reply', `the backend answered with ${what}`);
}
