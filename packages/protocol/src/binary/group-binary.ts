// The binary format of a page of groups: "MRG2", the length of a JSON head, the head `{ page, trajectories }`, where `trajectories` says
// how many trajectories each group has, then for each trajectory its length and its bytes. Lengths are uint32, little-endian; the head
// and each trajectory are padded with zeros to a multiple of four bytes. A writer needs one trajectory at a time.

import { z } from 'zod';
import { type GroupPage, groupPage } from '../batch.ts';
import type { Trajectory } from '../trajectory.ts';
import { fromBinary } from './trajectory-binary.ts';

export const groupsMediaType = 'application/vnd.millrace.groups';

const magic = Buffer.from('MRG2');
const binaryHead = z.object({ page: groupPage, trajectories: z.array(z.int().min(0)) });

export interface BinaryGroups {
  readonly page: GroupPage;
  /** For each group of the page, in the order of its rollouts. */
  readonly trajectories: readonly (readonly Trajectory[])[];
}

/** The first bytes of a page. The trajectories of all of its rollouts must follow, in order, each as `toGroupsPart`. */
export function toGroupsStart(page: GroupPage): Buffer {
  const trajectories = page.groups.map(({ rollouts }) => rollouts.length);
  return Buffer.concat([magic, ...toGroupsPart(Buffer.from(JSON.stringify({ page, trajectories })))]);
}

/** A length, then as many bytes, not copied, then their padding. The bytes of a trajectory are those of `toBinary`. */
export function toGroupsPart(bytes: Buffer): Buffer[] {
  const length = Buffer.alloc(4);
  length.writeUInt32LE(bytes.length);
  return [length, bytes, Buffer.alloc(toPadded(bytes.length) - bytes.length)].filter((piece) => piece.length > 0);
}

/** Throws an Error if the bytes are not a whole page. */
export function fromBinaryGroups(buffer: Buffer): BinaryGroups {
  if (!buffer.subarray(0, 4).equals(magic)) throw new Error('not a page of groups: the first bytes are not MRG2');
  let at = 4;
  const readPart = () => {
    const length = at + 4 <= buffer.length ? buffer.readUInt32LE(at) : 0;
    const end = at + 4 + toPadded(length);
    if (end > buffer.length) throw new Error(`page of groups is cut off: it has ${buffer.length} bytes, and ${end} are announced so far`);
    const part = buffer.subarray(at + 4, at + 4 + length);
    at = end;
    return part;
  };
  const { page, trajectories } = binaryHead.parse(JSON.parse(readPart().toString('utf8')));
  const read = trajectories.map((count) => Array.from({ length: count }, () => fromBinary(readPart())));
  if (at !== buffer.length) throw new Error(`page of groups has ${buffer.length} bytes, but ends after ${at}`);
  return { page, trajectories: read };
}

function toPadded(length: number): number {
  return Math.ceil(length / 4) * 4;
}
