// The JSON and binary formats of a trajectory, and the golden files that other languages read.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { fromBinary, rolloutView, type Trajectory, toBinary, toTrajectoryView, trajectoryView } from '@millrace/protocol';
import { makeRolloutView, makeTrajectory } from './examples.ts';

async function readGolden(name: string): Promise<unknown> {
  return JSON.parse(await readFile(new URL(`golden/${name}`, import.meta.url), 'utf8'));
}

test('the JSON format is the golden file, and its schema keeps every field', async () => {
  const golden = await readGolden('trajectory.json');
  assert.deepEqual(toTrajectoryView(makeTrajectory()), golden);
  assert.deepEqual(trajectoryView.parse(golden), golden);
});

test('the binary format of the example is the golden file, byte for byte', async () => {
  const bytes = await readFile(new URL('golden/trajectory.mrt', import.meta.url));
  assert.ok(toBinary(makeTrajectory()).equals(bytes));
});

test('a rollout on the wire is the golden file, and its schema keeps every field', async () => {
  const golden = await readGolden('rollout.json');
  assert.deepEqual(makeRolloutView(), golden);
  assert.deepEqual(rolloutView.parse(golden), golden);
});

test('the binary format is read back bit for bit, even from a pool with an odd offset', () => {
  const trajectory = makeTrajectory();
  const bytes = toBinary(trajectory);
  for (const shift of [0, 1, 2, 3]) {
    const pooled = Buffer.concat([Buffer.alloc(shift), bytes]).subarray(shift);
    assert.deepEqual(fromBinary(pooled), trajectory);
  }
  const odd = { ...trajectory, segments: [withLogprobs(Float32Array.of(Number.NaN, Number.NEGATIVE_INFINITY, -0, 1e-45))] };
  assert.deepEqual(fromBinary(toBinary(odd)), odd);
  assert.deepEqual(fromBinary(toBinary({ ...trajectory, segments: [], tools: [] })).segments, []);
});

test('ids that are part of a larger array are written without their neighbours', () => {
  const all = Int32Array.of(1, 2, 3, 4);
  const [prompt] = makeTrajectory().segments;
  assert.ok(prompt);
  const back = fromBinary(toBinary({ ...makeTrajectory(), segments: [{ ...prompt, tokenIds: all.subarray(1, 3) }] }));
  assert.deepEqual(back.segments[0]?.tokenIds, Int32Array.of(2, 3));
});

test('bytes that are not a whole trajectory are refused', () => {
  const bytes = toBinary(makeTrajectory());
  for (let end = 0; end < bytes.length; end += 1) assert.throws(() => fromBinary(bytes.subarray(0, end)), `cut at ${end}`);
  assert.throws(() => fromBinary(Buffer.concat([bytes, Buffer.alloc(4)])), { code: 'trajectory-corrupt' });
  assert.throws(() => fromBinary(Buffer.from('{"rollout_id":"a"}')), /not MRT2/);
  const wrong = Buffer.from(bytes);
  wrong.writeUInt32LE(0xffff_ffff, 4);
  assert.throws(() => fromBinary(wrong));
});

test('every flipped bit of the binary format is refused', () => {
  const bytes = toBinary(makeTrajectory());
  for (let bit = 0; bit < 8 * bytes.length; bit += 1) {
    const flipped = Buffer.from(bytes);
    flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (1 << (bit & 7));
    assert.throws(() => fromBinary(flipped), bit < 32 ? /not MRT2/ : { code: 'trajectory-corrupt' }, `bit ${bit}`);
  }
});

test('the format of older versions, without a checksum, is read', () => {
  const bytes = toBinary(makeTrajectory());
  const old = Buffer.concat([Buffer.from('MRT1'), bytes.subarray(4, -32)]);
  assert.deepEqual(fromBinary(old), makeTrajectory());
  assert.throws(() => fromBinary(Buffer.concat([old, Buffer.alloc(4)])), /bytes of numbers/);
});

test('the checksum of the JSON format changes with each of its texts and numbers, and with nothing that JSON cannot carry', () => {
  const trajectory = makeTrajectory();
  const sumOf = (one: Trajectory) => toTrajectoryView(one).sha256;
  const [first, ...rest] = trajectory.segments;
  assert.ok(first);
  const change = (fields: Partial<typeof first>) => ({ ...trajectory, segments: [{ ...first, ...fields }, ...rest] });
  const changed = [
    { ...trajectory, rolloutId: 'other' },
    { ...trajectory, attempt: 9 },
    change({ kind: 'observation' }),
    change({ text: `${first.text} ` }),
    change({ tokenIds: first.tokenIds.map((id, index) => id + Number(index === 0)) }),
    change({ tokenIds: first.tokenIds.subarray(1) }),
    change({ logprobs: Float32Array.of(-1) }),
    change({ samplingMask: { lengths: Int32Array.of(1), tokenIds: Int32Array.of(5) } }),
    change({ routedExperts: { from: 0, shape: [1], ids: Uint8Array.of(3) } }),
    { ...trajectory, segments: rest },
  ];
  assert.equal(new Set([trajectory, ...changed].map(sumOf)).size, changed.length + 1);
  const zero = (value: number) => change({ logprobs: Float32Array.of(value) });
  assert.equal(sumOf(zero(-0)), sumOf(zero(0)));
});

test('only sampled segments have mask 1', () => {
  const view = toTrajectoryView(makeTrajectory());
  assert.deepEqual(
    view.segments.map(({ kind, mask }) => [kind, mask]),
    [
      ['prompt', 0],
      ['sampled', 1],
      ['inserted', 0],
      ['observation', 0],
      ['sampled', 1],
    ],
  );
});

function withLogprobs(logprobs: Float32Array): Trajectory['segments'][number] {
  return { kind: 'sampled', turn: 1, text: '', messages: [], tokenIds: new Int32Array(logprobs.length), logprobs };
}
