// A trajectory as the store keeps it: its binary format, compressed. What comes back is believed only if its content has its checksum and
// belongs to the rollout and the attempt of its row; anything else is `trajectory-corrupt`. Trajectories of older versions have no
// checksum until they are read.

import {
  checkBinary,
  fromBinary,
  isBinaryOf,
  messageOf,
  RolloutError,
  type RolloutId,
  type Trajectory,
  toBinary,
} from '@millrace/protocol';
import type { PackedTrajectory } from '../claim.ts';
import { compress, decompress } from './compression.ts';

export async function packTrajectory(trajectory: Trajectory): Promise<PackedTrajectory & { readonly bytes: Buffer }> {
  const binary = toBinary(trajectory);
  return { bytes: await compress(binary), sha256: binary.toString('hex', binary.length - 32) };
}

/** Whether no later reading can succeed. */
export function isLostTrajectory(error: unknown): error is RolloutError {
  return error instanceof RolloutError && (error.code === 'trajectory-missing' || error.code === 'trajectory-corrupt');
}

interface WantedTrajectory {
  readonly id: RolloutId;
  readonly attempt: number;
  /** That of the content, if the store has it elsewhere too. */
  readonly sha256?: string | undefined;
}

/** Its binary format, with a checksum. */
export async function unpackTrajectory(frame: Uint8Array, { id, attempt, sha256 }: WantedTrajectory): Promise<Buffer> {
  const corrupt = (seen: string, cause?: unknown) =>
    new RolloutError('trajectory-corrupt', `the stored trajectory of rollout ${id}, attempt ${attempt}, is corrupt: ${seen}`, { cause });
  try {
    const binary = await decompress(frame);
    const seen = checkBinary(binary);
    const checked = seen === undefined ? toBinary(fromBinary(binary)) : binary;
    if (!isBinaryOf(checked, { rolloutId: id, attempt })) throw corrupt('it belongs to another rollout or attempt');
    if (sha256 !== undefined && sha256 !== seen) throw corrupt(`its checksum is ${seen ?? 'missing'} instead of ${sha256}`);
    return checked;
  } catch (error) {
    throw error instanceof RolloutError && error.message.startsWith('the stored') ? error : corrupt(messageOf(error), error);
  }
}
