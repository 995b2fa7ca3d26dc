// The binary format of a page of groups: "MRG1", the length of a JSON head, the head `{ page, trajectories }`, where `trajectories` has
// the byte lengths of the trajectories of each group, then the trajectories in their binary format. The head and each trajectory are
// padded with zeros to a multiple of four bytes.

import { z } from 'zod';
import { type GroupPage, groupPage } from '../batch.ts';
import type { Trajectory } from '../trajectory.ts';
import { fromBinary, toBinary } from './trajectory-binary.ts';

export const groupsMediaType = 'application/vnd.millrace.groups';

const magic = 0x4d52_4731; // "MRG1"
const binaryHead = z.object({ page: groupPage, trajectories: z.array(z.array(z.int().min(0))) });

export interface BinaryGroups {
  readonly page: GroupPage;
  /** For each group of the page, in the order of its rollouts. */
  readonly trajectories: readonly (readonly Trajectory[])[];
}

export function toBinaryGroups({ page, trajectories }: BinaryGroups): Buffer {
  const bodies = trajectories.map((group) => group.map(toBinary));
  const head = Buffer.from(JSON.stringify({ page, trajectories: bodies.map((group) => group.map((body) => body.length)) }));
  const start = Buffer.alloc(8);
  start.writeUInt32BE(magic, 0);
  start.writeUInt32LE(head.length, 4);
  return Buffer.concat([start, pad(head), ...bodies.flat().map(pad)]);
}

/** Throws an Error if the bytes are not a whole page. */
export function fromBinaryGroups(buffer: Buffer): BinaryGroups {
  if (buffer.length < 8 || buffer.readUInt32BE(0) !== magic) throw new Error('not a page of groups: the first bytes are not MRG1');
  const headLength = buffer.readUInt32LE(4);
  const { page, trajectories } = binaryHead.parse(JSON.parse(buffer.toString('utf8', 8, 8 + headLength)));
  let at = 8 + toPadded(headLength);
  const read = trajectories.map((group) =>
    group.map((length) => {
      const body = buffer.subarray(at, at + length);
      at += toPadded(length);
      return fromBinary(body);
    }),
  );
  if (at !== buffer.length) throw new Error(`page of groups has ${buffer.length} bytes, but its head announces ${at}`);
  return { page, trajectories: read };
}

function pad(bytes: Buffer): Buffer {
  return Buffer.concat([bytes], toPadded(bytes.length));
}

function toPadded(length: number): number {
  return Math.ceil(length / 4) * 4;
}
