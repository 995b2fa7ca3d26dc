// Submitting many rollouts: ids are made here where the caller gave none, so that whatever breaks, the same request can be
// sent again and changes nothing. A full queue is waited out in smaller pieces.

import { randomUUID } from 'node:crypto';
import { RolloutError, type RolloutId, rolloutId, routes, type SubmissionInput, type SubmitReply, submitReply } from '@millrace/protocol';
import { pause, type Transport } from './transport.ts';

export type Accepted = SubmitReply['rollouts'][number];
export type IdentifiedSubmission = Omit<SubmissionInput, 'id'> & { readonly id: RolloutId };

export interface SubmitOptions {
  readonly signal?: AbortSignal;
  /** Called before a piece is sent: from then on it may have been accepted, whatever the answer. */
  readonly onSend?: (ids: readonly RolloutId[]) => void;
  readonly onAccept?: (accepted: readonly Accepted[]) => void;
}

const largestPiece = 1000;

export function toIdentified(submissions: readonly SubmissionInput[]): IdentifiedSubmission[] {
  return submissions.map((one) => ({ ...one, id: toRolloutId(one.id ?? `r-${randomUUID()}`) }));
}

/** In order. Throws the service's refusal; pieces accepted before it stay accepted. */
export async function submitAll(
  transport: Transport,
  submissions: readonly IdentifiedSubmission[],
  options: SubmitOptions = {},
): Promise<Accepted[]> {
  const accepted: Accepted[] = [];
  let size = largestPiece;
  while (accepted.length < submissions.length) {
    options.signal?.throwIfAborted();
    const piece = submissions.slice(accepted.length, accepted.length + size);
    options.onSend?.(piece.map((one) => one.id));
    const sent = await sendPiece(transport, piece, options.signal);
    if (sent.kind === 'accepted') {
      accepted.push(...sent.rollouts);
      options.onAccept?.(sent.rollouts);
      size = Math.min(largestPiece, size * 2);
    } else {
      // A piece larger than the whole queue, or than the service's body limit, would be refused for ever.
      size = Math.max(1, Math.floor(piece.length / 2));
      await pause(sent.pauseMs, options.signal);
    }
  }
  return accepted;
}

type Sent = { readonly kind: 'accepted'; readonly rollouts: readonly Accepted[] } | { readonly kind: 'smaller'; readonly pauseMs: number };

async function sendPiece(transport: Transport, piece: readonly IdentifiedSubmission[], signal: AbortSignal | undefined): Promise<Sent> {
  const call = { method: 'POST', path: routes.submitRollouts.path, body: { rollouts: piece }, busy: 'throw' } as const;
  try {
    const { rollouts } = await transport.json({ ...call, ...(signal === undefined ? {} : { signal }) }, submitReply);
    if (rollouts.length === piece.length) return { kind: 'accepted', rollouts };
    throw new RolloutError('internal', `POST /v1/rollouts answered ${rollouts.length} rollouts for ${piece.length} submissions`);
  } catch (error) {
    if (!(error instanceof RolloutError)) throw error;
    if (error.code === 'too-busy') return { kind: 'smaller', pauseMs: Number(error.details?.retry_after_ms) };
    if (error.code === 'body-too-large' && piece.length > 1) return { kind: 'smaller', pauseMs: 0 };
    throw error;
  }
}

export function toRolloutId(id: string): RolloutId {
  const parsed = rolloutId.safeParse(id);
  if (parsed.success) return parsed.data;
  throw new RolloutError('bad-request', `${JSON.stringify(id)} is not a rollout id: it ${parsed.error.issues[0]?.message}`);
}
