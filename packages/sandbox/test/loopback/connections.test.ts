// LoopbackConnections of programs in a sandbox: what the executor reports is checked, and no more than a window is on the way in either direction.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { Duplex } from 'node:stream';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { connectionWindowBytes, RolloutError } from '@millrace/protocol';
import { LoopbackConnections } from '../../src/loopback/connections.ts';

type Sent = { readonly method: string; readonly connection: number; readonly bytes?: number; readonly body?: number };

function open(maxConnections = 2) {
  const sent: Sent[] = [];
  const opened: Duplex[] = [];
  const connections = new LoopbackConnections({
    send: (method, params, body) => sent.push({ method, ...params, ...(body && { body: body.length }) }),
  });
  const listener = connections.addListener({ maxConnections, onConnection: (connection) => opened.push(connection) });
  const take = (event: string, more: object = {}, body = Buffer.alloc(0)) => connections.take({ event, connection: 1, ...more }, body);
  const connect = (connection = 1): Duplex => {
    take('open', { connection, listener });
    const last = opened.at(-1);
    assert.ok(last);
    return last;
  };
  return { connections, sent, take, connect, listener };
}

test('an event that no executor sends throws', () => {
  const { take, connect, listener } = open();
  assert.throws(() => take('data'), /connection 1 is not open/);
  assert.throws(() => take('open', { listener: 7 }), /listener 7/);
  connect();
  assert.throws(() => take('open', { listener }), /already open/);
  connect(2);
  assert.throws(() => connect(3), /more than 2/);
  assert.throws(() => take('ack', { bytes: 1 }), /not sent/);
  assert.throws(() => take('data', {}, Buffer.alloc(connectionWindowBytes + 1)), /window/);
  take('end', { connection: 2 });
  assert.throws(() => take('end', { connection: 2 }), /ended twice/);
  assert.throws(() => take('data', { connection: 2 }, Buffer.alloc(1)), /after its end/);
  for (const [event, more] of [
    ['other', {}],
    ['ack', {}],
    ['ack', { bytes: -1 }],
    ['data', { connection: 'x' }],
    ['data', { connection: 0.5 }],
  ] as const)
    assert.throws(() => take(event, more), JSON.stringify([event, more]));
});

test('at most a window is sent before the program takes it, and the end follows everything', async () => {
  const { take, connect, sent } = open();
  const connection = connect();
  connection.end(Buffer.alloc(2 * connectionWindowBytes + 10));
  await nextTurn();
  const bodies = () => sent.flatMap(({ body = 0 }) => body);
  assert.deepEqual(bodies(), [connectionWindowBytes]);
  take('ack', { bytes: 100 });
  assert.deepEqual(bodies(), [connectionWindowBytes, 100]);
  take('ack', { bytes: connectionWindowBytes });
  assert.equal(bodies().at(-1), connectionWindowBytes - 90);
  assert.ok(!sent.some(({ method }) => method === 'connection.end'));
  const finished = once(connection, 'finish');
  take('ack', { bytes: connectionWindowBytes - 90 });
  await finished;
  assert.deepEqual(sent.at(-1), { method: 'connection.end', connection: 1 });
});

test('bytes are acknowledged when they are read, and those that arrived are kept after the end of both sides', async () => {
  const { take, connect, sent } = open();
  const connection = connect();
  take('data', {}, Buffer.alloc(100_000, 'a'));
  await nextTurn();
  assert.deepEqual(sent, []);
  connection.end();
  await once(connection, 'finish');
  take('end');
  take('close');
  assert.throws(() => take('data'), /not open/);
  let bytes = 0;
  for await (const chunk of connection) bytes += (chunk as Buffer).length;
  assert.equal(bytes, 100_000);
});

test('a connection that its owner destroys stays known until the executor has closed it', async () => {
  const { take, connect, sent } = open(1);
  const connection = connect();
  connection.destroy();
  await once(connection, 'close');
  assert.deepEqual(sent, [{ method: 'connection.close', connection: 1 }]);
  take('data', {}, Buffer.alloc(5));
  assert.throws(() => connect(2), /more than 1/);
  take('close');
  connect(2);
});

test('an owner that throws, and the end of the sandbox, end connections with the error', async () => {
  const { connections, sent, connect } = open();
  const connection = connect();
  const refusing = connections.addListener({
    maxConnections: 1,
    onConnection: () => {
      throw new Error('no');
    },
  });
  connections.take({ event: 'open', connection: 9, listener: refusing }, Buffer.alloc(0));
  await nextTurn();
  assert.deepEqual(sent, [{ method: 'connection.close', connection: 9 }]);
  connections.close(new RolloutError('sandbox-died', 'gone'));
  await nextTurn();
  assert.match(String(connection.errored), /gone/);
  assert.equal(sent.length, 1);
});
