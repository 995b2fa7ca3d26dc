// Two servers on one store: what one accepted the other continues, and what they both see is done and counted once.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { systemClock } from '@millrace/base/clock';
import { silentLog } from '@millrace/base/log';
import { Leadership, type Store } from '@millrace/store';
import { FakeClock, makeTempFolder } from '@millrace/testkit';
import { BatchKeeper } from '../../src/batches/batch-keeper.ts';
import { TaskFiles } from '../../src/batches/task-files.ts';
import { WebhookSender } from '../../src/batches/webhook.ts';
import { WebhookTargets } from '../../src/batches/webhook-target.ts';
import { finishQueued, openBatchFloor } from './batch-floor.ts';
import { type Floor, makeResult, makeTrajectory, openFloor, task } from './floor.ts';

test('two servers send each group to its webhook once', async () => {
  const seen: string[] = [];
  const server = createServer(async (request, response) => {
    seen.push(String(request.headers['webhook-id']));
    await wait(20); // both servers have looked by now
    response.writeHead(204).end();
    server.emit('delivery');
  }).listen(0, '127.0.0.1');
  await using _ = {
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
    },
  };
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  await using floor = await openBatchFloor({ target: 4, webhook: { url } });
  await finishQueued(floor);
  const openSender = () => new WebhookSender({ store: floor.store, clock: systemClock, log: silentLog, targets: new WebhookTargets([]) });
  await using senders = new AsyncDisposableStack();
  for (const sender of [senders.use(openSender()), senders.use(openSender())]) sender.start();
  while (seen.length < 4) await once(server, 'delivery');
  while ((await floor.store.dueWebhooks()).nextAtMs !== undefined) await wait(5); // until the last outcome is stored
  assert.deepEqual([seen, (await floor.store.dueWebhooks()).due], [['b/1', 'b/2', 'b/3', 'b/4'], []]);
});

/** A store as a server sees it that is being killed: nothing that it writes arrives. */
function cutOff(store: Store): Store {
  return Object.assign(Object.create(store), {
    renewProrlJobs: async () => {},
    closeProrlJob: async () => {},
    cancel: async () => 'ended' as const,
  });
}

test('a ProRL job whose server died is answered by another one, without a second rollout', async () => {
  const clock = new FakeClock();
  await using first = await openFloor({ clock, server: 'first', wrap: cutOff });
  await using second = await openFloor({ clock, server: 'second', shared: first.store });
  await first.worker.register();
  const body = { job_id: 'job', instance: { data_source: 'deepscaler', ...task }, sampling_params: {} };
  await first.call('POST', '/start');
  await first.call('POST', '/add_llm_server', { address: '10.0.0.1:8000' });
  const unanswered = first.call('POST', '/process', body);
  const claimed = await claimFirst(first);
  const repeated = second.call('POST', '/process', body); // at once: its lease has not ended
  while (!(await second.store.prorlJobs('job')).some((job) => job.server.startsWith('second'))) {
    clock.advance(500);
    await wait(5);
  }
  await first.worker.finish(claimed, { state: 'done', result: makeResult({ reward: 1 }), trajectory: makeTrajectory(claimed.id) });
  const { status, body: reply } = await repeated;
  assert.deepEqual([status, reply.rollout_id, reply.reward], [200, 'job', 1]);
  assert.deepEqual((await second.call('GET', '/v1/rollouts')).body.rollouts.length, 1);
  first.app.drain();
  await unanswered;
});

async function claimFirst({ store, worker }: Floor) {
  while ((await store.counts()).queued === 0) await wait(5);
  return await worker.claim();
}

test('a client that starts, cancels and stops over another server reaches the jobs of the first', async () => {
  await using first = await openFloor({ server: 'first' });
  await using second = await openFloor({ server: 'second', shared: first.store });
  await first.call('POST', '/start');
  await second.call('POST', '/add_llm_server', { address: '10.0.0.1:8000' });
  const send = (job_id: string) => first.call('POST', '/process', { job_id, instance: { data_source: 'deepscaler', ...task } });
  const [one, again, other] = [send('one'), send('one'), send('other')];
  while ((await second.store.prorlJobs()).length < 3 || (await second.store.counts()).queued < 3) await wait(5);
  assert.equal((await second.call('POST', '/start')).status, 200, 'this server was not started');
  assert.equal((await second.call('POST', '/cancel', { job_id: 'one' })).status, 200);
  for (const reply of [await one, await again]) assert.equal(reply.body.status ?? reply.status, reply.body.status ?? 200);
  assert.equal((await second.store.counts()).cancelled, 2);
  assert.equal((await second.call('POST', '/stop')).status, 200);
  await other;
  assert.equal((await first.call('POST', '/process', { instance: {} })).status, 503, 'the other server was stopped too');
});

test('a sum over the metrics of all servers counts everything once', async () => {
  await using first = await openFloor();
  await using second = await openFloor({ shared: first.store, isLeader: false });
  const read = async (floor: Floor) => String((await floor.app.inject({ url: '/metrics' })).body);
  const texts = [await read(first), await read(second)];
  const countOf = (name: string) => texts.filter((text) => new RegExp(`^${name}[ {]`, 'm').test(text)).length;
  for (const name of ['millrace_rollouts', 'millrace_rollouts_queued_total', 'millrace_workers', 'millrace_store_full'])
    assert.equal(countOf(name), 1, name);
  for (const name of ['millrace_resident_bytes', 'millrace_loop_lag_seconds']) assert.equal(countOf(name), 2, name);
  assert.deepEqual(
    texts.map((text) => /^millrace_server_leads (\d)$/m.exec(text)?.[1]),
    ['1', '0'],
  );
});

test('one server leads; another leads when it closes, and the same one after a restart', async () => {
  const clock = new FakeClock();
  await using floor = await openFloor({ clock });
  const open = (server: string) => new Leadership({ store: floor.store, server, clock, log: silentLog });
  const [a, b, c] = [open('a'), open('b'), open('c')];
  await a.start();
  await using _b = b;
  await b.start();
  assert.deepEqual([a.isLeader, b.isLeader], [true, false]);
  await a[Symbol.asyncDispose]();
  clock.advance(3400);
  while (!b.isLeader) await wait(5);
  // It dies: the duty is held in its name, and no one renews it.
  await floor.store.takeDuty({ name: 'lead', holder: 'b', leaseMs: 10_000 });
  await using cut = open('b');
  await cut.start();
  assert.equal(cut.isLeader, true, 'a restarted server leads at once');
  await using _c = c;
  await c.start();
  assert.equal(c.isLeader, false);
});

test('a server without the task file of a batch, or with another one, says so and draws nothing', async () => {
  await using folder = await makeTempFolder('millrace-tasks');
  const [path, changed] = [join(folder.path, 'train.jsonl'), join(folder.path, 'changed.jsonl')];
  await writeFile(path, `${JSON.stringify(task)}\n`.repeat(4));
  await writeFile(changed, `${JSON.stringify({ ...task, question: '2 + 2' })}\n`.repeat(4));
  await using first = await openFloor({ taskFiles: { train: path } });
  await using second = await openFloor({ shared: first.store });
  await using third = await openFloor({ shared: first.store, taskFiles: { train: changed } });
  const request = { id: 'b', scenario: 'sums', group_size: 2, target: 1, source: { file: 'train' } };
  assert.equal((await first.call('POST', '/v1/batches', request)).body.waiting, undefined);
  assert.match((await second.call('GET', '/v1/batches/b')).body.waiting, /no task file named "train": give every server the same file/);
  assert.match((await third.call('GET', '/v1/batches/b')).body.waiting, /differs from the one that the batch began with/);
  const scenarios = { get: () => undefined, names: () => [] };
  const stuck: unknown[] = [];
  const log = { ...silentLog, error: (event: string, fields?: object) => void stuck.push([event, fields]) };
  for (const files of [new TaskFiles({}), new TaskFiles({ train: changed })]) {
    const keeper = new BatchKeeper({ store: first.store, scenarios, files, clock: systemClock, log });
    for (const _round of [1, 2]) await keeper.advance();
  }
  assert.equal(stuck.length, 2, 'each is logged once');
  assert.equal((await first.store.counts()).queued, 0);
});
