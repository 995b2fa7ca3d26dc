// The batch routes over a real store, with a keeper and a worker controlled by the test: what is refused, and how groups are read,
// waited for, streamed and acknowledged.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { batchView, fromBinaryGroups, groupPage, groupsMediaType } from '@millrace/protocol';
import { batch, finishClaims, finishQueued, keep, openBatchFloor } from '../batch-floor.ts';
import { errorOf, makeTrajectory, openFloor, task } from '../floor.ts';

test('an append key with different tasks is a conflict that says what differs', async () => {
  await using floor = await openBatchFloor({ closed: false });
  const append = (more: object) => floor.call('POST', '/v1/batches/b/tasks', { key: 'k', tasks: [task], ...more });
  assert.equal((await append({})).status, 200);
  assert.equal((await append({})).status, 200);
  const refused = await append({ tasks: [task, task] });
  assert.equal(refused.status, 409);
  assert.match(errorOf(refused).message, /^key: "k" was used for a different request: tasks: it has 2 tasks, and had 1/);
});

test('a batch is resumed by its route, unless it is unknown or has ended', async () => {
  await using floor = await openBatchFloor();
  assert.equal((await floor.call('POST', '/v1/batches/b/resume')).body.state, 'open');
  await floor.call('DELETE', '/v1/batches/b');
  assert.equal((await floor.call('POST', '/v1/batches/b/resume')).status, 409);
  assert.equal((await floor.call('POST', '/v1/batches/none/resume')).status, 404);
});

test('an invalid batch is refused with the faulty field', async () => {
  await using floor = await openFloor();
  const refused: [Record<string, unknown>, RegExp, string][] = [
    [{ group_size: 1 }, /^group_size:/, 'bad-request'],
    [{ min_samples: 3 }, /^min_samples:/, 'bad-request'],
    [{ min_samples: 1 }, /^min_samples:/, 'bad-request'],
    [{ min_rewards: 3 }, /^min_rewards: 3 is more than the group_size of 2/, 'bad-request'],
    [{ priority: 101 }, /^priority:/, 'bad-request'],
    [{ weight: 0 }, /^weight:/, 'bad-request'],
    [{ give_up_after: 1 }, /^give_up_after:/, 'bad-request'],
    [{ target: 0 }, /^target:/, 'bad-request'],
    [{ informative: { rule: 'mean-within', above: 1, below: 0 } }, /^informative\.below:/, 'bad-request'],
    [{ informative: { rule: 'odd' } }, /^informative\.rule:/, 'bad-request'],
    [{ surplus: 'keep' }, /^surplus:/, 'bad-request'],
    [{ tasks: [], closed: true }, /^tasks:/, 'bad-request'],
    [{ source: { file: 'x' } }, /^source\.file: no task file is named "x"; known: none/, 'bad-request'],
    [{ scenario: 'nothing' }, /^scenario:/, 'unknown-scenario'],
    [{ tasks: [task, { question: 1 }] }, /^tasks\[1\]\.question:/, 'task-invalid'],
    [{ webhook: { url: 'ftp://x' } }, /^webhook\.url:/, 'bad-request'],
    [{ id: 'x'.repeat(101) }, /^id:/, 'bad-request'],
    [{ targets: 1 }, /^targets: unknown field/, 'bad-request'],
  ];
  for (const [fields, message, code] of refused) {
    const reply = await floor.call('POST', '/v1/batches', { ...batch, ...fields });
    assert.equal(reply.status, 400, JSON.stringify(fields));
    assert.match(errorOf(reply).message, message);
    assert.equal(errorOf(reply).code, code);
  }
  assert.deepEqual((await floor.call('GET', '/v1/batches')).body, { batches: [], next: null });
});

test('a repeated request changes nothing, a different one with the same id is a conflict, an unknown id is not found', async () => {
  await using floor = await openBatchFloor();
  const again = await floor.call('POST', '/v1/batches', batch);
  assert.deepEqual([again.status, batchView.parse(again.body).tasks.given], [200, 8]);
  assert.equal((await floor.call('POST', '/v1/batches', { ...batch, target: 3 })).status, 409);
  for (const [method, path, body] of [
    ['GET', '', undefined],
    ['DELETE', '', undefined],
    ['GET', '/groups', undefined],
    ['POST', '/tasks', { tasks: [] }],
    ['POST', '/ack', { consumer: 'c', through: 1 }],
  ] as const)
    assert.equal((await floor.call(method, `/v1/batches/unknown${path}`, body)).status, 404, path);
});

test('groups are returned in order with their trajectories, as JSON and as binary', async () => {
  await using floor = await openBatchFloor();
  await finishQueued(floor);
  const view = batchView.parse((await floor.call('GET', '/v1/batches/b?wait=5')).body);
  assert.deepEqual([view.state, view.groups.delivered, view.informative_share], ['met', 2, 1]);
  const page = groupPage.parse((await floor.call('GET', '/v1/batches/b/groups?trajectories=true')).body);
  assert.deepEqual([page.groups.map(({ seq }) => seq), page.next, page.state], [[1, 2], 2, 'met']);
  assert.deepEqual(
    page.groups[0]?.rewards,
    page.groups[0]?.rollouts.map(({ reward }) => reward),
  );
  assert.deepEqual(
    page.groups[0]?.trajectories?.map(({ rollout_id }) => rollout_id),
    page.groups[0]?.rollouts.map(({ id }) => id),
  );
  const reply = await floor.app.inject({ url: '/v1/batches/b/groups', headers: { accept: groupsMediaType } });
  const binary = fromBinaryGroups(reply.rawPayload);
  assert.deepEqual(binary.page, groupPage.parse((await floor.call('GET', '/v1/batches/b/groups')).body));
  assert.deepEqual(binary.trajectories[1]?.[0]?.segments, makeTrajectory('x').segments);
  assert.throws(() => fromBinaryGroups(reply.rawPayload.subarray(0, -4)));
  assert.equal((await floor.app.inject({ url: '/v1/batches/b/groups', headers: { accept: 'text/html' } })).statusCode, 406);
});

test('a long poll returns with the next group, and immediately when the batch has ended', async () => {
  await using floor = await openBatchFloor({ target: 1 });
  const waiting = floor.call('GET', '/v1/batches/b/groups?wait=60');
  const ending = floor.call('GET', '/v1/batches/b?wait=60');
  await finishQueued(floor);
  assert.equal((await waiting).body.groups.length, 1);
  assert.equal((await ending).body.state, 'met');
  assert.deepEqual((await floor.call('GET', '/v1/batches/b/groups?wait=60&after=1')).body, { groups: [], next: 1, state: 'met' });
});

test('two consumers each read every group once, from their own acknowledgements', async () => {
  await using floor = await openBatchFloor();
  await finishQueued(floor);
  const read = async (consumer: string) =>
    (await floor.call('GET', `/v1/batches/b/groups?limit=1&consumer=${consumer}`)).body.groups[0]?.seq;
  const ack = (consumer: string, through: number) => floor.call('POST', '/v1/batches/b/ack', { consumer, through });
  assert.equal(await read('a'), 1);
  assert.equal(await read('a'), 1, 'not acknowledged, so it comes again');
  assert.deepEqual((await ack('a', 1)).body, { consumer: 'a', through: 1 });
  assert.deepEqual([await read('a'), await read('b')], [2, 1]);
  await ack('a', 2);
  assert.equal(await read('a'), undefined);
  assert.deepEqual((await ack('a', 0)).body, { consumer: 'a', through: 2 });
});

test('the stream sends each group with its seq as the id, resumes after it, and ends with the batch', async () => {
  await using floor = await openBatchFloor();
  const url = await floor.listen();
  const open = (headers: Record<string, string> = {}) =>
    fetch(`${url}/v1/batches/b/groups`, { headers: { accept: 'text/event-stream', ...headers } });
  const reply = await open();
  await finishQueued(floor);
  const frames = (await reply.text()).split('\n\n').filter((frame) => frame.includes('event:'));
  assert.deepEqual(
    frames.map((frame) => /event: (.*)/.exec(frame)?.[1]),
    ['group', 'group', 'batch-end'],
  );
  assert.deepEqual(
    frames.map((frame) => /id: (.*)/.exec(frame)?.[1]),
    ['1', '2', undefined],
  );
  const resumed = await (await open({ 'last-event-id': '1' })).text();
  assert.deepEqual(resumed.match(/^id: .*/gm), ['id: 2']);
});

test('cancelling ends queued rollouts immediately and notifies running ones, and delivered groups stay readable', async () => {
  await using floor = await openBatchFloor({ target: 3 });
  await finishClaims(floor, 2);
  const [running] = await floor.store.claim(floor.worker.id, 1);
  const reply = await floor.call('DELETE', '/v1/batches/b');
  assert.deepEqual([reply.body.state, reply.body.groups.delivered, reply.body.groups.open], ['cancelled', 1, 0]);
  assert.deepEqual(await floor.worker.report(), [running?.id]);
  const { rollouts } = await floor.store.list({ limit: 100 });
  assert.deepEqual(
    rollouts.filter(({ state }) => state === 'queued'),
    [],
  );
  assert.equal((await floor.call('GET', '/v1/batches/b/groups')).body.groups.length, 1);
  assert.equal((await floor.call('POST', '/v1/batches/b/tasks', { tasks: [task] })).status, 409);
});

test('an open batch accepts tasks until it is closed, and then ends short of its target', async () => {
  await using floor = await openBatchFloor({ tasks: [], target: 5 });
  assert.equal((await floor.call('GET', '/v1/batches/b')).body.state, 'open');
  await floor.call('POST', '/v1/batches/b/tasks', { tasks: [task, task] });
  await keep(floor);
  await finishQueued(floor);
  await floor.call('POST', '/v1/batches/b/tasks', { closed: true });
  await keep(floor);
  const view = (await floor.call('GET', '/v1/batches/b')).body;
  assert.deepEqual([view.state, view.groups.delivered], ['short', 2]);
});
