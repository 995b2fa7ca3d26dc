// Pages of groups with long trajectories: bounded by bytes, streamed, exact in every form, and never half of one.

import assert from 'node:assert/strict';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import {
  fromBinaryGroups,
  type GroupView,
  groupPage,
  groupsMediaType,
  RolloutError,
  type RolloutId,
  type Trajectory,
  toTrajectoryView,
} from '@millrace/protocol';
import type { Store } from '@millrace/store';
import { finishQueued, openBatchFloor } from '../batch-floor.ts';
import { makeTrajectory } from '../floor.ts';

/** Numbers that do not compress, so that the stored size is known. */
function makeLong(id: string, tokens: number): Trajectory {
  const trajectory = makeTrajectory(id);
  const tokenIds = Int32Array.from({ length: tokens }, (_, index) => Math.floor(Math.abs(Math.sin(index) * 1e9) % 150_000));
  const logprobs = Float32Array.from(tokenIds, (value, index) => -0.001 - Math.abs(Math.sin(value + index)));
  const segments = trajectory.segments.map((segment) => (segment.kind === 'sampled' ? { ...segment, tokenIds, logprobs } : segment));
  return { ...trajectory, segments };
}

test('a page of JSON ends before it has too many bytes, and has at least one group', async () => {
  const tokens = 1000;
  // A group has about 15 kB, and a page of JSON may have 50.
  await using floor = await openBatchFloor({ target: 4 }, { config: { maxPageBytes: 400_000 } });
  await finishQueued(floor, (id) => makeLong(id, tokens));
  const read = async (after: number) => (await floor.app.inject(`/v1/batches/b/groups?trajectories=true&after=${after}`)).json();
  const seqs: number[][] = [];
  for (let next = 0; next < 4; ) {
    const page = groupPage.parse(await read(next));
    seqs.push(page.groups.map(({ seq }) => seq));
    for (const { rollouts, trajectories } of page.groups)
      assert.deepEqual(
        trajectories,
        rollouts.map(({ id }) => toTrajectoryView(makeLong(id, tokens))),
      );
    next = page.next;
  }
  assert.deepEqual([seqs.flat(), seqs.length > 1], [[1, 2, 3, 4], true], JSON.stringify(seqs));
});

test('long trajectories leave the event loop free in every form', async () => {
  await using floor = await openBatchFloor({ target: 4 });
  await finishQueued(floor, (id) => makeLong(id, 16_000));
  const url = await floor.listen();
  for (const headers of [{ accept: groupsMediaType }, { accept: 'application/json' }]) {
    // The test reads nothing but the size, so what is measured is the server's part.
    const delay = monitorEventLoopDelay({ resolution: 1 });
    delay.enable();
    const reply = await fetch(`${url}/v1/batches/b/groups?trajectories=true`, { headers });
    let bytes = 0;
    for await (const chunk of reply.body ?? []) bytes += (chunk as Uint8Array).length;
    delay.disable();
    assert.ok(bytes > 1_000_000, `${bytes}`);
    assert.ok(delay.percentile(50) < 20e6, `${headers.accept}: half of the time the event loop was ${delay.percentile(50) / 1e6} ms late`);
  }
});

test('a reply that cannot be completed is cut off, so that no client takes it for a page', async () => {
  let reads = 0;
  const wrap = (store: Store): Store => {
    const failing = (read: Store['binaryTrajectory']) => (id: Parameters<typeof read>[0]) => {
      reads += 1;
      return reads > 2 ? Promise.resolve(undefined) : read(id);
    };
    return Object.assign(Object.create(store), { binaryTrajectory: failing(store.binaryTrajectory) });
  };
  await using floor = await openBatchFloor({}, { wrap });
  await finishQueued(floor);
  const url = await floor.listen();
  const reply = await fetch(`${url}/v1/batches/b/groups`, { headers: { accept: groupsMediaType } });
  assert.equal(reply.status, 200);
  await assert.rejects(reply.arrayBuffer(), /terminated/);
});

test('a trajectory that is corrupt or lost is an error in its place, and its siblings and the other groups are delivered', async () => {
  const wrap = (store: Store): Store => {
    const failing =
      <T>(read: (id: RolloutId) => Promise<T>) =>
      (id: RolloutId) => {
        if (!id.endsWith(':0')) return read(id);
        const code = id.endsWith('0:0') ? 'trajectory-missing' : 'trajectory-corrupt';
        return Promise.reject(new RolloutError(code, `the trajectory of ${id}`));
      };
    const reads = { binaryTrajectory: failing(store.binaryTrajectory), trajectory: failing(store.trajectory) };
    return Object.assign(Object.create(store), reads);
  };
  await using floor = await openBatchFloor({}, { wrap });
  await finishQueued(floor);
  const json = groupPage.parse((await floor.app.inject('/v1/batches/b/groups?trajectories=true')).json());
  const lostIds = json.groups.flatMap(({ rollouts }) => rollouts.map(({ id }) => id).filter((id) => id.endsWith(':0')));
  const inJson = json.groups.flatMap(({ trajectories = [] }) => trajectories.filter((one) => 'error' in one));
  assert.deepEqual([inJson.map((one) => one.rollout_id), lostIds.length], [lostIds, 2]);
  const headers = { accept: groupsMediaType };
  const binary = fromBinaryGroups((await floor.app.inject({ url: '/v1/batches/b/groups', headers })).rawPayload);
  assert.deepEqual(binary.lost.flat(), inJson);
  for (const [index, { rollouts, rewards }] of binary.page.groups.entries()) {
    assert.deepEqual([rollouts.length, rewards], [1, [0]]);
    assert.equal(binary.trajectories[index]?.[0]?.rolloutId, rollouts[0]?.id);
  }
});

test('a flipped bit anywhere in a binary page is refused', async () => {
  await using floor = await openBatchFloor();
  await finishQueued(floor);
  const page = (await floor.app.inject({ url: '/v1/batches/b/groups', headers: { accept: groupsMediaType } })).rawPayload;
  for (let bit = 0; bit < 8 * page.length; bit += 7) {
    const flipped = Buffer.from(page);
    flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (1 << (bit & 7));
    const isPadding = page[bit >> 3] === 0;
    const read = () => fromBinaryGroups(flipped);
    if (isPadding) assert.ok(isRefused(read) || isDeepStrictEqual(read(), fromBinaryGroups(page)), `bit ${bit}`);
    else assert.throws(read, `bit ${bit}`);
  }
});

function isRefused(read: () => unknown): boolean {
  try {
    read();
    return false;
  } catch {
    return true; // with any error
  }
}

test('server-sent events and binary pages have the trajectories of the JSON page', async () => {
  await using floor = await openBatchFloor();
  await finishQueued(floor);
  const json = groupPage.parse((await floor.app.inject('/v1/batches/b/groups?trajectories=true')).json());
  const binary = fromBinaryGroups(
    (await floor.app.inject({ url: '/v1/batches/b/groups', headers: { accept: groupsMediaType } })).rawPayload,
  );
  assert.deepEqual(
    binary.trajectories.map((group) => group.map(toTrajectoryView)),
    json.groups.map(({ trajectories }) => trajectories),
  );
  const headers = { accept: 'text/event-stream' };
  const events = (await floor.app.inject({ url: '/v1/batches/b/groups?trajectories=true', headers })).body;
  const groups = [...events.matchAll(/^event: group\ndata: (.*)$/gm)].map(([, data]): GroupView => JSON.parse(data ?? ''));
  assert.deepEqual(groupPage.parse({ ...json, groups }), json);
});
