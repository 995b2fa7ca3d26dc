// Compares a trajectory with what the backend sent, token by token.

import type { Trajectory } from '@millrace/protocol';
import type { ScriptedBackend } from '../local/scripted-backend.ts';

/** One line for each sampled segment whose ids or logprobs are not those that were sent. */
export function findWrongTokens({ rolloutId, segments }: Trajectory, backend: Pick<ScriptedBackend, 'sentTo'>): string[] {
  let position = 0;
  return segments.flatMap((segment, index) => {
    const at = position;
    position += segment.tokenIds.length;
    if (segment.kind !== 'sampled') return [];
    const sent = backend.sentTo(rolloutId, at);
    const isSame = sent?.tokenIds.join() === segment.tokenIds.join() && sent.logprobs.join() === segment.logprobs.join();
    return isSame ? [] : [`${rolloutId}, segment ${index}, at token ${at}`];
  });
}
