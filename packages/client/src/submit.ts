// Submits many rollouts. Missing ids are made here, so that the same request can be repeated after any failure and changes nothing.
// When the service's queue is full, smaller pieces are sent until there is room.

import { randomUUID } from 'node:crypto';
import {
  definedOf,
  mostFaults,
  RolloutError,
  type RolloutId,
  requestFaults,
  rolloutId,
  routes,
  type SubmissionInput,
  type SubmitReply,
  submitReply,
} from '@millrace/protocol';
import { type CallOptions, pause, type Transport } from './transport.ts';

export type Accepted = SubmitReply['rollouts'][number];
export type IdentifiedSubmission = Omit<SubmissionInput, 'id'> & { readonly id: RolloutId };

export interface SubmitOptions extends CallOptions {
  /** Called before a piece is sent. From then on it may have been accepted, even if no reply arrives. */
  readonly onSend?: (ids: readonly RolloutId[]) => void;
  readonly onAccept?: (accepted: readonly Accepted[]) => void;
}

const largestPiece = 1000;

export function toIdentified(submissions: readonly SubmissionInput[]): IdentifiedSubmission[] {
  return submissions.map((one) => ({ ...one, id: toRolloutId(one.id ?? `r-${randomUUID()}`) }));
}

/** Submits in order. Throws the service's refusal; pieces accepted before it stay accepted. */
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
      // A piece larger than the whole queue, or than the service's body limit, would never be accepted.
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
    const { rollouts } = await transport.json({ ...call, ...definedOf({ signal }) }, submitReply);
    if (rollouts.length === piece.length) return { kind: 'accepted', rollouts };
    throw new RolloutError('internal', `POST /v1/rollouts returned ${rollouts.length} rollouts for ${piece.length} submissions`);
  } catch (error) {
    if (!(error instanceof RolloutError)) throw error;
    if (error.code === 'too-busy') return { kind: 'smaller', pauseMs: Number(error.details?.retry_after_ms) };
    if (error.code === 'body-too-large' && piece.length > 1) return { kind: 'smaller', pauseMs: 0 };
    throw error;
  }
}

export interface SubmissionFault {
  /** Its submission. */
  readonly index: number;
  /** The field, such as `task.answer`; empty for the whole. */
  readonly path: string;
  readonly message: string;
}

/** Every fault that the service finds in the submissions. Nothing is stored. */
export async function checkAll(
  transport: Transport,
  submissions: readonly SubmissionInput[],
  { signal }: CallOptions = {},
): Promise<SubmissionFault[]> {
  const faults: SubmissionFault[] = [];
  let [from, size] = [0, largestPiece];
  while (from < submissions.length) {
    const piece = submissions.slice(from, from + size);
    const found = await checkPiece(transport, piece, signal);
    if (found === 'smaller') size = Math.ceil(piece.length / 2);
    else {
      faults.push(...found.map((fault) => ({ ...fault, index: from + fault.index })));
      // A list that is full ends before the piece does.
      from += found.length < mostFaults ? piece.length : (found.at(-1)?.index ?? 0) + 1;
    }
  }
  return faults;
}

async function checkPiece(
  transport: Transport,
  piece: readonly SubmissionInput[],
  signal: AbortSignal | undefined,
): Promise<readonly SubmissionFault[] | 'smaller'> {
  const call = { method: 'POST', path: routes.submitRollouts.path, query: { check: 'true' }, body: { rollouts: piece } } as const;
  try {
    await transport.json({ ...call, ...definedOf({ signal }) }, submitReply);
    return [];
  } catch (error) {
    if (!(error instanceof RolloutError)) throw error;
    if (error.code === 'body-too-large') return piece.length > 1 ? 'smaller' : [{ index: 0, path: '', message: error.message }];
    const listed = requestFaults.safeParse(error.details?.faults);
    const faults = (listed.data ?? []).flatMap(({ index, path, message }) => (index === undefined ? [] : [{ index, path, message }]));
    if (faults.length === 0) throw error;
    return faults.map((fault) => ({ ...fault, path: fault.path.replace(/^rollouts\[\d+\]\.?/, '') }));
  }
}

export function toRolloutId(id: string): RolloutId {
  const parsed = rolloutId.safeParse(id);
  if (parsed.success) return parsed.data;
  throw new RolloutError('bad-request', `${JSON.stringify(id)} is not a rollout id: ${parsed.error.issues[0]?.message}`);
}
