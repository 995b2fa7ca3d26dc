// The binary format of a trajectory: "MRT2", the length of a JSON head, the head with everything except the numbers, then all ids as int32,
// all logprobs as float32, all sampling masks as int32 (the lengths, then the ids), and all routed experts as uint8 or uint16,
// little-endian, then the SHA-256 of all bytes before it. Writing and reading it is exact, bit for bit; a changed bit is refused. "MRT1",
// of older versions, is the same without a checksum.

import { hash } from 'node:crypto';
import { z } from 'zod';
import { definedOf } from '../plain/defined.ts';
import { RolloutError } from '../plain/error.ts';
import { provenance, type RoutedExperts, type SamplingMask, type Segment, segmentHead, type Trajectory, toolSpec } from '../trajectory.ts';

export const trajectoryMediaType = 'application/vnd.millrace.trajectory';

const magic = 0x4d52_5432; // "MRT2"
const uncheckedMagic = 0x4d52_5431; // "MRT1"
const checksumBytes = 32;

const expertsHead = z.object({
  from: z.int().min(0),
  shape: z.array(z.int()),
  width: z.union([z.literal(1), z.literal(2)]),
  count: z.int().min(0),
});

const binaryHead = z.object({
  rollout_id: z.string(),
  attempt: z.int(),
  model: z.string(),
  tools: z.array(toolSpec),
  provenances: z.array(provenance).optional(),
  text_dropped: z.literal(true).optional(),
  segments: z.array(
    segmentHead.extend({
      ids: z.int().min(0),
      logprobs: z.int().min(0),
      mask_ids: z.int().min(0).optional().describe('The number of ids in its sampling masks, which have a length for each id.'),
      experts: expertsHead.optional(),
    }),
  ),
});

export function toBinary(trajectory: Trajectory): Buffer {
  const { segments } = trajectory;
  const head = Buffer.from(
    JSON.stringify({
      rollout_id: trajectory.rolloutId,
      attempt: trajectory.attempt,
      model: trajectory.model,
      tools: trajectory.tools,
      ...definedOf({ provenances: trajectory.provenances, text_dropped: trajectory.textDropped }),
      segments: segments.map(({ tokenIds, logprobs, routedExperts, samplingMask, ...rest }) => ({
        ...rest,
        ids: tokenIds.length,
        logprobs: logprobs.length,
        ...definedOf({ mask_ids: samplingMask?.tokenIds.length, experts: routedExperts && toExpertsHead(routedExperts) }),
      })),
    }),
  );
  const padded = Math.ceil((8 + head.length) / 4) * 4;
  const masks = segments.flatMap(({ samplingMask }) => (samplingMask ? [samplingMask.lengths, samplingMask.tokenIds] : []));
  const experts = segments.flatMap(({ routedExperts }) => (routedExperts ? [routedExperts.ids] : []));
  const arrays = [...segments.map((s) => s.tokenIds), ...segments.map((s) => s.logprobs), ...masks, ...experts];
  const end = padded + sum(arrays.map(({ byteLength }) => byteLength));
  const buffer = Buffer.alloc(end + checksumBytes);
  buffer.writeUInt32BE(magic, 0);
  buffer.writeUInt32LE(head.length, 4);
  head.copy(buffer, 8);
  let at = padded;
  for (const numbers of arrays) {
    Buffer.from(numbers.buffer, numbers.byteOffset, numbers.byteLength).copy(buffer, at);
    at += numbers.byteLength;
  }
  hash('sha256', buffer.subarray(0, end), 'buffer').copy(buffer, end);
  return buffer;
}

/**
 * The checksum of a trajectory in hexadecimal; absent in the format of older versions. Throws `trajectory-corrupt` if the bytes do not
 * have it, and an Error if they are not a trajectory.
 */
export function checkBinary(buffer: Buffer): string | undefined {
  const first = buffer.length < 8 ? undefined : buffer.readUInt32BE(0);
  if (first === uncheckedMagic) return undefined;
  if (first !== magic) throw new Error('not a trajectory: the first bytes are not MRT2');
  const seen = hash('sha256', buffer.subarray(0, -checksumBytes), 'hex');
  const stored = buffer.toString('hex', Math.max(0, buffer.length - checksumBytes));
  if (seen === stored) return seen;
  throw new RolloutError('trajectory-corrupt', `the trajectory was changed: its checksum is ${stored}, and its content has ${seen}`);
}

/** Whether the trajectory is that of this attempt. It reads the start of the head only. */
export function isBinaryOf(buffer: Buffer, { rolloutId, attempt }: Pick<Trajectory, 'rolloutId' | 'attempt'>): boolean {
  const start = JSON.stringify({ rollout_id: rolloutId, attempt }).replace(/}$/, ',');
  return buffer.subarray(8, 8 + Buffer.byteLength(start)).equals(Buffer.from(start));
}

/** Throws `trajectory-corrupt` if the bytes do not have their checksum, and an Error if they are not a whole trajectory. */
export function fromBinary(bytes: Buffer): Trajectory {
  const buffer = checkBinary(bytes) === undefined ? bytes : bytes.subarray(0, -checksumBytes);
  const headLength = buffer.readUInt32LE(4);
  const head = binaryHead.parse(JSON.parse(buffer.toString('utf8', 8, 8 + headLength)));
  // Copied, because the offset of a Buffer in its pool may not be a multiple of four.
  const numbers = new Uint8Array(buffer.subarray(Math.ceil((8 + headLength) / 4) * 4));
  const idCount = sum(head.segments.map((segment) => segment.ids));
  const masksStart = 4 * (idCount + sum(head.segments.map((segment) => segment.logprobs)));
  const expertsStart = masksStart + sum(head.segments.map(maskBytes));
  const wanted = expertsStart + sum(head.segments.map(({ experts }) => (experts ? experts.width * experts.count : 0)));
  if (numbers.byteLength !== wanted)
    throw new Error(`trajectory has ${numbers.byteLength} bytes of numbers, but its head announces ${wanted}`);
  let idAt = 0;
  let logprobAt = 4 * idCount;
  let maskAt = masksStart;
  let expertsAt = expertsStart;
  const segments: Segment[] = head.segments.map(({ ids, logprobs, mask_ids, experts, ...rest }) => {
    const segment = {
      ...rest,
      tokenIds: new Int32Array(numbers.buffer, idAt, ids),
      logprobs: new Float32Array(numbers.buffer, logprobAt, logprobs),
      ...(mask_ids === undefined ? {} : { samplingMask: toMask(numbers, maskAt, { ids, mask_ids }) }),
      ...(experts ? { routedExperts: toExperts(experts, numbers.subarray(expertsAt, expertsAt + experts.width * experts.count)) } : {}),
    };
    maskAt += maskBytes({ ids, mask_ids });
    expertsAt += experts ? experts.width * experts.count : 0;
    idAt += 4 * ids;
    logprobAt += 4 * logprobs;
    return segment;
  });
  const { rollout_id: rolloutId, attempt, model, tools, provenances, text_dropped: textDropped } = head;
  return { rolloutId, attempt, model, tools, ...definedOf({ provenances, textDropped }), segments };
}

interface MaskHead {
  readonly ids: number;
  readonly mask_ids?: number | undefined;
}

function maskBytes({ ids, mask_ids }: MaskHead): number {
  return mask_ids === undefined ? 0 : 4 * (ids + mask_ids);
}

function toMask(numbers: Uint8Array<ArrayBuffer>, at: number, { ids, mask_ids }: MaskHead): SamplingMask {
  return { lengths: new Int32Array(numbers.buffer, at, ids), tokenIds: new Int32Array(numbers.buffer, at + 4 * ids, mask_ids) };
}

function toExpertsHead({ from, shape, ids }: RoutedExperts): z.infer<typeof expertsHead> {
  return { from, shape: [...shape], width: ids instanceof Uint8Array ? 1 : 2, count: ids.length };
}

/** Copied, because uint16 values may not start at an even offset. */
function toExperts({ from, shape, width }: z.infer<typeof expertsHead>, bytes: Uint8Array): RoutedExperts {
  const own = bytes.slice();
  return { from, shape, ids: width === 1 ? own : new Uint16Array(own.buffer) };
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
