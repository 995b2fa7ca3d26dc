// The rollout routes over a real store: submit, get, wait, list, read, cancel.

import assert from 'node:assert/strict';
import { request } from 'node:http';
import { test } from 'node:test';
import { fromBinary, rolloutId, trajectoryMediaType, trajectoryView } from '@millrace/protocol';
import type { Store } from '@millrace/store';
import { z } from 'zod';
import { errorOf, makeFailure, makeTrajectory, openFloor, shareFloor, task } from '../floor.ts';

const sharedFloor = shareFloor();

test('a submission returns its ids, and a rollout without an id gets one', async () => {
  const floor = sharedFloor();
  const { status, body } = await floor.call('POST', '/v1/rollouts', {
    rollouts: [
      { id: 'mine', scenario: 'sums', task },
      { scenario: 'sums', task },
    ],
  });
  assert.equal(status, 200);
  assert.deepEqual(body.rollouts[0], { id: 'mine', state: 'queued', created: true });
  assert.match(body.rollouts[1].id, /^r-[0-9a-f-]{36}$/);
});

test('resubmitting the same id changes nothing, regardless of key order and explicit defaults', async () => {
  const floor = sharedFloor();
  await floor.submit({ id: 'same' });
  const again = { limits: { max_turns: 50 }, task: { answer: '2', question: '1 + 1' }, scenario: 'sums', id: 'same' };
  const { body } = await floor.call('POST', '/v1/rollouts', { rollouts: [again] });
  assert.deepEqual(body.rollouts, [{ id: 'same', state: 'queued', created: false }]);
});

test('a known id with different content is a conflict that names it, and nothing of the submission is accepted', async () => {
  const floor = sharedFloor();
  await floor.submit({ id: 'taken' });
  const rollouts = [
    { id: 'other', scenario: 'sums', task },
    { id: 'taken', scenario: 'sums', task: { ...task, answer: '3' } },
  ];
  const reply = await floor.call('POST', '/v1/rollouts', { rollouts });
  assert.equal(reply.status, 409);
  assert.deepEqual(errorOf(reply).details, { ids: ['taken'] });
  assert.equal((await floor.call('GET', '/v1/rollouts/other')).status, 404);
});

test('an alias is stored under the name of its scenario', async () => {
  const floor = sharedFloor();
  const id = await floor.submit({ scenario: 'deepscaler' });
  assert.equal((await floor.call('GET', `/v1/rollouts/${id}`)).body.scenario, 'sums');
});

const refusals: readonly [string, object, string, RegExp][] = [
  [
    'an unknown field is refused by name',
    { limits: { max_turn: 3 } },
    'bad-request',
    /^rollouts\[1\]\.limits\.max_turn: unknown field; did you mean max_turns\?$/,
  ],
  ['a wrong type is refused by path', { sampling: { top_p: 'x' } }, 'bad-request', /^rollouts\[1\]\.sampling\.top_p: /],
  [
    'an unknown scenario is refused with the known ones',
    { scenario: 'nope' },
    'unknown-scenario',
    /^rollouts\[1\]\.scenario: .*"nope"; known: sums, free$/,
  ],
  ['a task is checked by its scenario', { task: { question: 1, answer: '2' } }, 'task-invalid', /^rollouts\[1\]\.task\.question: /],
  [
    'an unknown field of a task is refused by name',
    { task: { ...task, hints: [{ txt: '' }] } },
    'task-invalid',
    /rollouts\[1\]\.task\.hints\[0\]\.txt: unknown field/,
  ],
  [
    'an image in a message is refused by its path, also where the scenario takes any task',
    {
      scenario: 'free',
      task: {
        chat: [
          {
            role: 'user',
            content: [
              { type: 'text', text: 'See.' },
              { type: 'image_url', image_url: {} },
            ],
          },
        ],
      },
    },
    'task-invalid',
    /^rollouts\[1\]\.task\.chat\[0\]\.content\[1\]: messages with content of type "image_url" are not supported; send text only$/,
  ],
  ['a duplicate id in one submission is refused', { id: 'a' }, 'bad-request', /^rollouts\[1\]\.id: a is already the id of rollouts\[0\]$/],
  ['an id that does not match the pattern is refused', { id: '../x' }, 'bad-request', /^rollouts\[1\]\.id: must be/],
];
test('a null in a task is an absent field where the schema has no null, as tables of mixed tasks have them', async () => {
  await using floor = await openFloor();
  const mixed = { ...task, hints: null, choices: null };
  const nested = { ...task, hints: [{ text: 'look', more: null }] };
  const free = { chat: null, list: [null, 1] };
  const rollouts = [mixed, nested].map((one) => ({ scenario: 'sums', task: one }));
  const { status, body } = await floor.call('POST', '/v1/rollouts', { rollouts: [...rollouts, { scenario: 'free', task: free }] });
  assert.deepEqual([status, body.rollouts?.length], [200, 3], JSON.stringify(body));
  const missing = await floor.call('POST', '/v1/rollouts', { rollouts: [{ scenario: 'sums', task: { ...task, answer: null } }] });
  assert.equal(errorOf(missing).code, 'task-invalid');
  assert.match(errorOf(missing).message, /rollouts\[0\]\.task\.answer/);
  const batch = { id: 'nulls', scenario: 'sums', tasks: [mixed], group_size: 2, target: 1 };
  assert.equal((await floor.call('POST', '/v1/batches', batch)).body.id, 'nulls');
});

test('an invalid submission is refused as a whole, with the path of each fault', async (t) => {
  await using floor = await openFloor();
  for (const [title, fields, code, message] of refusals) {
    await t.test(title, async () => {
      const good = { id: 'a', scenario: 'sums', task };
      const reply = await floor.call('POST', '/v1/rollouts', { rollouts: [good, { ...good, id: 'b', ...fields }] });
      assert.equal(reply.status, 400);
      assert.equal(errorOf(reply).code, code);
      assert.match(errorOf(reply).message, message);
    });
  }
  assert.equal((await floor.store.counts()).queued, 0);
});

test('beyond the queue limit a submission gets 429 with a Retry-After that follows the rate of ends', async () => {
  await using floor = await openFloor({ config: { maxQueued: 2 } });
  const id = await floor.submit({ id: 'a' });
  await floor.submit({ id: 'b' });
  const first = await floor.call('POST', '/v1/rollouts', { rollouts: [{ scenario: 'sums', task }] });
  assert.equal(first.status, 429);
  assert.equal(first.headers['retry-after'], '60');
  assert.equal(errorOf(first).retryable, true);

  assert.equal((await floor.call('POST', '/v1/rollouts', { rollouts: [{ id: 'a', scenario: 'sums', task }] })).status, 200);
  await floor.worker.register();
  const waiting = floor.call('GET', '/v1/rollouts/a?wait=30');
  await floor.worker.succeed(id);
  await waiting;
  await floor.submit({ id: 'c' });
  const second = await floor.call('POST', '/v1/rollouts', { rollouts: [{ scenario: 'sums', task }] });
  assert.ok(Number(second.headers['retry-after']) < 10);
});

test('lists filter by state, group and scenario, page by page', async () => {
  await using floor = await openFloor();
  for (const id of ['a', 'b', 'c']) await floor.submit({ id, group: 'g' });
  await floor.submit({ id: 'd', scenario: 'free', task: {} });
  const page = (await floor.call('GET', '/v1/rollouts?group=g&limit=2')).body;
  const rest = (await floor.call('GET', `/v1/rollouts?group=g&limit=2&after=${page.next}`)).body;
  const ids = (list: { rollouts: { id: string }[] }) => list.rollouts.map((rollout) => rollout.id);
  assert.deepEqual([ids(page), ids(rest), rest.next], [['a', 'b'], ['c'], null]);
  assert.deepEqual(ids((await floor.call('GET', '/v1/rollouts?scenario=free&state=queued')).body), ['d']);
  for (const query of ['limit=0', 'limit=1001', 'state=lost', 'colour=red', 'state=done&state=run']) {
    assert.equal((await floor.call('GET', `/v1/rollouts?${query}`)).status, 400, query);
  }
});

test('lists can start with the newest rollout', async () => {
  await using floor = await openFloor();
  for (const id of ['a', 'b', 'c']) await floor.submit({ id });
  const page = (await floor.call('GET', '/v1/rollouts?order=newest&limit=2')).body;
  const rest = (await floor.call('GET', `/v1/rollouts?order=newest&limit=2&after=${page.next}`)).body;
  const ids = (list: { rollouts: { id: string }[] }) => list.rollouts.map((rollout) => rollout.id);
  assert.deepEqual([ids(page), ids(rest), rest.next], [['c', 'b'], ['a'], null]);
});

test('lists of a prefix find rollouts by the start of their id, page by page', async () => {
  await using floor = await openFloor();
  for (const id of ['ab', 'b', 'a', 'ac']) await floor.submit({ id });
  const page = (await floor.call('GET', '/v1/rollouts?prefix=a&limit=2')).body;
  const rest = (await floor.call('GET', `/v1/rollouts?prefix=a&limit=2&after=${page.next}`)).body;
  const ids = (list: { rollouts: { id: string }[] }) => list.rollouts.map((rollout) => rollout.id);
  assert.deepEqual([ids(page), ids(rest), rest.next], [['a', 'ab'], ['ac'], null]);
  assert.equal((await floor.call('GET', '/v1/rollouts?prefix=a%25')).status, 400);
});

test('the faults of all rollouts in a submission are listed with their index, up to a limit', async () => {
  const floor = sharedFloor();
  const wrong = { scenario: 'sums', task: { question: '1 + 1' } };
  const submit = async (rollouts: unknown[]) => errorOf(await floor.call('POST', '/v1/rollouts', { rollouts }));
  const some = await submit([{ scenario: 'sums', task }, wrong, { scenario: 'none', task }, { ...wrong, limits: { max_turn: 1 } }]);
  assert.equal(some.code, 'task-invalid');
  assert.match(
    some.message,
    /^rollouts\[1\]\.task\.answer: .*; rollouts\[2\]\.scenario: .*; rollouts\[3\]\.limits\.max_turn: unknown field; did you mean max_turns\?$/,
  );
  const faults = z.array(z.object({ index: z.int(), path: z.string(), message: z.string() })).parse(some.details?.faults);
  assert.deepEqual(
    faults.map(({ index, path }) => [index, path]),
    [
      [1, 'rollouts[1].task.answer'],
      [2, 'rollouts[2].scenario'],
      [3, 'rollouts[3].limits.max_turn'],
    ],
  );
  assert.equal(some.details?.fault_count, 3);
  const many = await submit(Array.from({ length: 1000 }, () => wrong));
  assert.equal(z.array(z.unknown()).parse(many.details?.faults).length, 1000);
  assert.match(many.message, /^rollouts\[0\].*rollouts\[19\][^[]*; and 980 more$/);
});

test('rollouts can be checked without being stored', async () => {
  await using floor = await openFloor();
  const check = (rollouts: unknown[]) => floor.call('POST', '/v1/rollouts?check=true', { rollouts });
  assert.deepEqual((await check([{ id: 'a', scenario: 'sums', task }])).body, { rollouts: [] });
  assert.match(errorOf(await check([{ scenario: 'sums', task: {} }])).message, /^rollouts\[0\]\.task/);
  assert.equal((await floor.call('GET', '/v1/rollouts/a')).status, 404);
});

test('a rollout without a reward is tried again under its id with a number, once at a time', async () => {
  await using floor = await openFloor();
  await floor.worker.register();
  const retry = (id: string) => floor.call('POST', `/v1/rollouts/${id}/retry`);
  const id = await floor.submit({ id: 'a', group: 'g', metadata: { step: 7 } });
  assert.match(errorOf(await retry(id)).message, /rollout a has not ended: it is in queued/);
  await floor.call('DELETE', '/v1/rollouts/a');
  const { body } = await retry(id);
  assert.deepEqual([body.id, body.state, body.group, body.metadata], ['a.1', 'queued', 'g', { step: 7 }]);
  assert.equal((await retry(id)).body.id, 'a.1', 'it is tried again already');
  const again = { rollouts: [{ id: 'a.1', scenario: 'sums', task, group: 'g', metadata: { step: 7 } }] };
  assert.deepEqual((await floor.call('POST', '/v1/rollouts', again)).body.rollouts[0].created, false);
  await floor.call('DELETE', '/v1/rollouts/a.1');
  assert.equal((await retry(id)).body.id, 'a.2');
  await floor.worker.succeed(rolloutId.parse('a.2'));
  assert.equal((await retry(id)).body.id, 'a.2', 'it has a reward');
  assert.match(errorOf(await retry('a.2')).message, /rollout a\.2 ended with a reward/);
  assert.equal((await retry('none')).status, 404);
});

test('a long poll returns when its rollout ends', async () => {
  const floor = sharedFloor();
  const id = await floor.submit({ metadata: { step: 7 } });
  const polls = Array.from({ length: 50 }, () => floor.call('GET', `/v1/rollouts/${id}?wait=60`));
  await floor.worker.succeed(id, 0.5);
  for (const { body } of await Promise.all(polls)) {
    assert.deepEqual([body.state, body.reward, body.metadata], ['done', 0.5, { step: 7 }]);
  }
});

test('a long poll that times out returns the current rollout', async () => {
  const floor = sharedFloor();
  const id = await floor.submit();
  assert.equal((await floor.call('GET', `/v1/rollouts/${id}?wait=0.01`)).body.state, 'queued');
  assert.equal((await floor.call('GET', `/v1/rollouts/${id}?wait=61`)).status, 400);
  assert.equal((await floor.call('GET', '/v1/rollouts/unknown?wait=60')).status, 404);
});

/** Counts the reads of single rollouts; `reach` resolves at the n-th. */
function countReads() {
  let reads = 0;
  const waiting = new Map<number, () => void>();
  const wrap = (store: Store) =>
    new Proxy(store, {
      get(target, name) {
        if (name === 'get') waiting.get(++reads)?.();
        return Reflect.get(target, name);
      },
    });
  return {
    wrap,
    count: () => reads,
    reach: (n: number) => new Promise<void>((resolve) => (reads >= n ? resolve() : waiting.set(n, resolve))),
  };
}

test('a long poll reads the store twice, not in a loop', async () => {
  const reads = countReads();
  await using floor = await openFloor({ wrap: reads.wrap });
  await floor.worker.register();
  const id = await floor.submit();
  const poll = floor.call('GET', `/v1/rollouts/${id}?wait=60`);
  await reads.reach(1);
  await floor.worker.succeed(id);
  await poll;
  assert.equal(reads.count(), 2);
});

test('a client that disconnects ends its long poll immediately', async () => {
  const reads = countReads();
  await using floor = await openFloor({ wrap: reads.wrap });
  const id = await floor.submit();
  const caller = request(`${await floor.listen()}/v1/rollouts/${id}?wait=60`);
  caller.on('error', () => {}); // it destroys its own connection
  caller.end();
  await reads.reach(1);
  caller.destroy();
  await reads.reach(2);
});

test('a trajectory is returned as JSON or binary, depending on Accept', async () => {
  const floor = sharedFloor();
  const id = await floor.submit();
  await floor.worker.succeed(id);
  const url = `/v1/rollouts/${id}/trajectory`;
  const json = await floor.app.inject({ url });
  assert.equal(trajectoryView.parse(json.json()).segments.length, 4);
  const bytes = await floor.app.inject({ url, headers: { accept: `${trajectoryMediaType}, application/json;q=0.5` } });
  assert.equal(bytes.headers['content-type'], trajectoryMediaType);
  assert.deepEqual(fromBinary(bytes.rawPayload), makeTrajectory(id));
  const neither = await floor.app.inject({ url, headers: { accept: 'text/html' } });
  assert.equal(neither.statusCode, 406);
  assert.equal(neither.json().error.code, 'not-acceptable');
});

test('the error for a missing trajectory says whether the rollout is unknown, has not ended, or has none', async () => {
  const floor = sharedFloor();
  const reason = async (id: string) => errorOf(await floor.call('GET', `/v1/rollouts/${id}/trajectory`)).details?.reason;
  assert.equal(await reason('missing'), 'unknown');
  const id = await floor.submit();
  assert.equal(await reason(id), 'not-ended');
  await floor.worker.finish(await floor.worker.claim(id), { state: 'failed', failure: makeFailure() });
  assert.equal(await reason(id), 'none');
});

test('cancelling returns the outcome, even before the rollout arrives', async () => {
  const floor = sharedFloor();
  const cancel = async (id: string) => (await floor.call('DELETE', `/v1/rollouts/${id}`)).body;
  const held = await floor.submit({ id: 'held' });
  await floor.worker.claim(held);
  await floor.submit({ id: 'queued' });
  assert.deepEqual(await cancel(held), { id: 'held', cancel: 'asked' });
  assert.deepEqual(await cancel('queued'), { id: 'queued', cancel: 'cancelled' });
  assert.deepEqual(await cancel('queued'), { id: 'queued', cancel: 'ended' });
  assert.deepEqual(await cancel('later'), { id: 'later', cancel: 'cancelled' });
  const { body } = await floor.call('POST', '/v1/rollouts', { rollouts: [{ id: 'later', scenario: 'sums', task }] });
  assert.equal(body.rollouts[0].state, 'cancelled');
});
