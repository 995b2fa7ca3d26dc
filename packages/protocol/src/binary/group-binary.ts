// The binary format of a page of groups: "MRG3", the length of a JSON head, the head `{ page, trajectories }`, where `trajectories` says
// how many trajectories each group has, the SHA-256 of all bytes before it, then for each trajectory its length and its bytes. Lengths are
// uint32, little-endian; the head and each trajectory are padded with zeros to a multiple of four bytes. A trajectory that could not be
// read is a `LostTrajectory` as JSON. A writer needs one trajectory at a time.

import { hash } from 'node:crypto';
import { z } from 'zod';
import { type GroupPage, type GroupView, groupPage, type LostTrajectory, lostTrajectory } from '../batch.ts';
import { RolloutError } from '../plain/error.ts';
import type { Trajectory } from '../trajectory.ts';
import { fromBinary } from './trajectory-binary.ts';

export const groupsMediaType = 'application/vnd.millrace.groups';

const magic = Buffer.from('MRG3');
const checksumBytes = 32;
const binaryHead = z.object({ page: groupPage, trajectories: z.array(z.int().min(0)) });

export interface BinaryGroups {
  /** Without the rollouts whose trajectories are lost. */
  readonly page: GroupPage;
  /** For each group of the page, in the order of its rollouts. */
  readonly trajectories: readonly (readonly Trajectory[])[];
  /** For each group of the page. */
  readonly lost: readonly (readonly LostTrajectory[])[];
}

/** The first bytes of a page. The trajectories of all of its rollouts must follow, in order, each as `toGroupsPart`. */
export function toGroupsStart(page: GroupPage): Buffer {
  const trajectories = page.groups.map(({ rollouts }) => rollouts.length);
  const start = Buffer.concat([magic, ...toGroupsPart(Buffer.from(JSON.stringify({ page, trajectories })))]);
  return Buffer.concat([start, hash('sha256', start, 'buffer')]);
}

/** A length, then as many bytes, not copied, then their padding. The bytes of a trajectory are those of `toBinary`. */
export function toGroupsPart(bytes: Buffer): Buffer[] {
  const length = Buffer.alloc(4);
  length.writeUInt32LE(bytes.length);
  return [length, bytes, Buffer.alloc(toPadded(bytes.length) - bytes.length)].filter((piece) => piece.length > 0);
}

/** Throws `trajectory-corrupt` if bytes were changed or are of other rollouts, and an Error if they are not a whole page. */
export function fromBinaryGroups(buffer: Buffer): BinaryGroups {
  if (!buffer.subarray(0, 4).equals(magic)) throw new Error('not a page of groups: the first bytes are not MRG3');
  let at = 4;
  const readPart = () => {
    const length = at + 4 <= buffer.length ? buffer.readUInt32LE(at) : 0;
    const end = at + 4 + toPadded(length);
    if (end > buffer.length) throw new Error(`page of groups is cut off: it has ${buffer.length} bytes, and ${end} are announced so far`);
    const part = buffer.subarray(at + 4, at + 4 + length);
    at = end;
    return part;
  };
  const head = readPart();
  const checksum = buffer.subarray(at, at + checksumBytes);
  if (!hash('sha256', buffer.subarray(0, at), 'buffer').equals(checksum))
    throw new RolloutError('trajectory-corrupt', 'the page of groups was changed: its head does not have its checksum');
  at += checksumBytes;
  const { page, trajectories } = binaryHead.parse(JSON.parse(head.toString('utf8')));
  const read = page.groups.map((group, index) => readGroup(group, trajectories[index] ?? 0, readPart));
  if (at !== buffer.length) throw new Error(`page of groups has ${buffer.length} bytes, but ends after ${at}`);
  return {
    page: { ...page, groups: read.map(({ group }) => group) },
    trajectories: read.map((one) => one.trajectories),
    lost: read.map(({ lost }) => lost),
  };
}

function readGroup(whole: GroupView, count: number, readPart: () => Buffer) {
  if (count !== whole.rollouts.length) throw new Error(`group ${whole.id} has ${count} trajectories for ${whole.rollouts.length} rollouts`);
  const parts = whole.rollouts.map((rollout) => ({ rollout, read: readTrajectory(readPart(), rollout) }));
  const isKept = parts.map(({ read }) => !('error' in read));
  const group = {
    ...whole,
    rollouts: whole.rollouts.filter((_, index) => isKept[index]),
    rewards: whole.rewards.filter((_, index) => isKept[index]),
  };
  return {
    group,
    trajectories: parts.flatMap(({ read }) => ('error' in read ? [] : [read])),
    lost: parts.flatMap(({ read }) => ('error' in read ? [read] : [])),
  };
}

function readTrajectory(bytes: Buffer, { id, attempt }: GroupView['rollouts'][number]): Trajectory | LostTrajectory {
  const read = bytes[0] === 0x7b ? lostTrajectory.parse(JSON.parse(bytes.toString('utf8'))) : fromBinary(bytes);
  const seen = 'error' in read ? { id: read.rollout_id, attempt } : { id: read.rolloutId, attempt: read.attempt };
  if (seen.id === id && seen.attempt === attempt) return read;
  const message = `a page of groups has attempt ${seen.attempt} of rollout ${seen.id} in place of attempt ${attempt} of ${id}`;
  throw new RolloutError('trajectory-corrupt', message);
}

function toPadded(length: number): number {
  return Math.ceil(length / 4) * 4;
}
