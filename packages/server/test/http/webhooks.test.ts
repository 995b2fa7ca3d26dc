// Webhooks over a real store and a real receiver: order, signature, retries, what is kept, and which addresses are refused.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { systemClock } from '@millrace/base/clock';
import { silentLog } from '@millrace/base/log';
import { groupView } from '@millrace/protocol';
import { EventTail, type Store } from '@millrace/store';
import { Webhook } from 'standardwebhooks';
import { WebhookSender } from '../../src/batches/webhook.ts';
import { WebhookTargets } from '../../src/batches/webhook-target.ts';
import { batch, finishQueued, openBatchFloor } from './batch-floor.ts';
import { openFloor } from './floor.ts';

interface Delivery {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

interface Receiver extends Disposable {
  readonly url: string;
  readonly seen: readonly Delivery[];
  until(count: number): Promise<void>;
}

/** Responds with 204, and to the first delivery with `first`. */
async function openReceiver({ first = 204 }: { readonly first?: number } = {}): Promise<Receiver> {
  const seen: Delivery[] = [];
  const server = createServer(async (request, response) => {
    seen.push({ headers: request.headers, body: await text(request) });
    response.writeHead(seen.length === 1 ? first : 204).end();
    server.emit('delivery');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    seen,
    async until(count) {
      while (seen.length < count) await once(server, 'delivery');
    },
    [Symbol.dispose]() {
      server.close();
      server.closeAllConnections();
    },
  };
}

function openSender(store: Store, hosts: readonly string[] = []): AsyncDisposable {
  const sender = new WebhookSender({ store, clock: systemClock, log: silentLog, targets: new WebhookTargets(hosts) });
  const tail = new EventTail({ store, after: 0, clock: systemClock, log: silentLog });
  tail.subscribe((events) => sender.push(events));
  sender.start();
  return {
    async [Symbol.asyncDispose]() {
      await sender[Symbol.asyncDispose]();
      await tail[Symbol.asyncDispose]();
    },
  };
}

test('a webhook gets each group in order and signed, again after a failure, and continues after a restart', async () => {
  using receiver = await openReceiver({ first: 500 });
  await using floor = await openBatchFloor({ webhook: { url: receiver.url, secret: 'key' } });
  await finishQueued(floor);
  const first = openSender(floor.store);
  await receiver.until(1);
  await first[Symbol.asyncDispose]();
  await using _second = openSender(floor.store);
  await receiver.until(3);
  assert.deepEqual(
    receiver.seen.map(({ headers }) => headers['webhook-id']),
    ['b/1', 'b/1', 'b/2'],
  );
  for (const { body } of receiver.seen) assert.equal(groupView.parse(JSON.parse(body)).trajectories?.length, 2);
  assert.doesNotMatch(JSON.stringify((await floor.call('GET', '/v1/batches/b')).body), /key|127\.0\.0\.1/);
});

test('the library of the Standard Webhooks project accepts a delivery, and refuses a changed one and one from yesterday', async () => {
  for (const { secret, webhook } of [
    { secret: 'a plain secret', webhook: new Webhook('a plain secret', { format: 'raw' }) },
    { secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', webhook: new Webhook('whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw') },
  ]) {
    using receiver = await openReceiver();
    await using floor = await openBatchFloor({ target: 1, webhook: { url: receiver.url, secret } });
    await finishQueued(floor);
    await using _sender = openSender(floor.store);
    await receiver.until(1);
    const { body, headers } = receiver.seen[0] ?? assert.fail();
    const sent = headers as Record<string, string>;
    assert.equal((webhook.verify(body, sent) as { id: string }).id, groupView.parse(JSON.parse(body)).id);
    assert.throws(() => webhook.verify(body.replace('"carried":false', '"carried":true'), sent), /No matching signature/);
    const yesterday = String(Number(sent['webhook-timestamp']) - 86_400);
    assert.throws(() => webhook.verify(body, { ...sent, 'webhook-timestamp': yesterday }), /too old/);
  }
});

test('a delivery whose outcome cannot be stored is not sent again while the service runs', async () => {
  using receiver = await openReceiver();
  await using floor = await openBatchFloor({ target: 1, webhook: { url: receiver.url } });
  await finishQueued(floor);
  let failures = 0;
  const failing: Store = Object.assign(Object.create(floor.store), {
    noteWebhook: (sent: Parameters<Store['noteWebhook']>[0]) => {
      failures += 1;
      return failures <= 2 ? Promise.reject(new Error('the disk is full')) : floor.store.noteWebhook(sent);
    },
  });
  await using _sender = openSender(failing);
  await receiver.until(1);
  while ((await floor.store.dueWebhooks()).nextAtMs !== undefined) await wait(20); // it is held until its outcome is stored
  assert.deepEqual([receiver.seen.length, failures], [1, 3]);
});

test('retention keeps a batch that its webhook has not received', async () => {
  await using floor = await openBatchFloor({ target: 1, webhook: { url: 'http://127.0.0.1:9/' } });
  await finishQueued(floor);
  // After ten times as long it would be deleted in any case.
  const ages = { endedMs: 2000, eventsMs: 3_600_000 };
  await wait(ages.endedMs + 100);
  assert.equal(await floor.store.retain(ages), 0);
  const { due } = await floor.store.dueWebhooks();
  for (const { batch, seq } of due) await floor.store.noteWebhook({ batch, seq });
  assert.notEqual(await floor.store.retain(ages), 0);
});

test('link-local and metadata addresses are refused in every spelling, with the field named', async () => {
  await using floor = await openFloor();
  const translated = [
    ...['[64:ff9b::169.254.169.254]', '[64:ff9b::a9fe:1]', '[64:ff9b:1::a9fe:a9fe]', '[64:ff9b:1:a9fe:a9:fe00::]', '[2002:a9fe:a9fe::1]'],
    ...[
      '[2001:0:a9fe:a9fe::1]',
      '[2001:0:1:2:3:4:5601:5601]',
      '[::169.254.169.254]',
      '[::ffff:0:169.254.169.254]',
      '[2001:db8::5efe:a9fe:a9fe]',
    ],
    ...[
      '[2001:db8::200:5efe:a9fe:1]',
      '[2001:db8:64::a9fe:a9fe]',
      '[2001:db8:64::100.100.100.200]',
      '[fd00:c1::a9fe:a9fe]',
      '[fd20:ce::254]',
    ],
  ];
  const plain = [
    '169.254.169.254',
    '0xa9fea9fe',
    '2852039166',
    '168.63.129.16',
    '[fe80::1]',
    '[::ffff:169.254.169.254]',
    '[fd00:ec2::254]',
  ];
  for (const host of [...plain, ...translated]) {
    const { status, body } = await floor.call('POST', '/v1/batches', { ...batch, webhook: { url: `http://${host}/latest/` } });
    assert.deepEqual([status, /^webhook\.url: .* is a link-local or metadata address$/.test(body.error.message)], [400, true], host);
  }
});

test('other addresses of IPv6 are accepted, also those that stand for one of IPv4', () => {
  const targets = new WebhookTargets([]);
  for (const host of ['[2606:4700::1111]', '[64:ff9b::8.8.8.8]', '[2002:808:808::1]', '[::ffff:10.0.0.1]', '[::1]', '[fd00::a9fe:1]'])
    assert.equal(targets.findFault(`http://${host}/`), undefined, host);
  const allowed = new WebhookTargets(['64:ff9b::/96']);
  assert.equal(allowed.findFault('http://[64:ff9b::a9fe:a9fe]/'), undefined, 'the configuration names it');
});

test('with http.webhookHosts only these names, addresses and subnets are accepted', async () => {
  await using floor = await openFloor({ config: { webhookHosts: ['trainer.example', '10.0.0.0/8'] } });
  const statusOf = async (host: string) =>
    (await floor.call('POST', '/v1/batches', { ...batch, id: `b-${host}`, webhook: { url: `http://${host}:1234/` } })).status;
  assert.deepEqual(await Promise.all(['trainer.example', '10.1.2.3', '11.1.2.3', '127.0.0.1'].map(statusOf)), [200, 200, 400, 400]);
});

test('a name is checked by what it resolves to when the connection is made', async () => {
  using receiver = await openReceiver();
  const { port } = new URL(receiver.url);
  await using floor = await openBatchFloor({ target: 1, webhook: { url: `http://localhost:${port}/` } });
  await finishQueued(floor);
  await using _refusing = openSender(floor.store, ['10.0.0.0/8']);
  while (!(await floor.store.dueWebhooks()).nextAtMs) await wait(10);
  assert.equal(receiver.seen.length, 0);
});
