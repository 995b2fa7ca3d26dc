// An end of judging that needs no control: a fault of the verifier that does not depend on what the agent left.

import { RolloutError } from '@millrace/protocol';

/** A verifier that cannot judge, which was shown not to depend on what the agent left: no control is needed. */
export function toVerifierFault(message: string): RolloutError {
  return new RolloutError('evaluate-failed', message, { details: { shown: true } });
}

export const isShownFault = (error: RolloutError): boolean => error.code === 'evaluate-failed' && error.details?.shown === true;
