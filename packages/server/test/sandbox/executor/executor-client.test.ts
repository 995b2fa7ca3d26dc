// The worker against an executor that the agent has taken over: whatever it sends, the worker says what it saw and lets go.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { encodeFrame, openFrameReader } from '@millrace/executor';
import { fileReadReply, RolloutError } from '@millrace/protocol';
import { ExecutorClient } from '../../../src/sandbox/executor/executor-client.ts';

const ready = encodeFrame({ event: 'ready', pid: 1, protocol: 1 });
const read = { method: 'file.read', params: {}, reply: fileReadReply, maxBytes: 10, deadlineMs: 5000 } as const;

/** A client whose peer answers the first call with `reply`; `broken` is what the client saw. */
async function openPair(reply: Buffer): Promise<{ client: ExecutorClient; peer: Socket; broken: Promise<string> } & AsyncDisposable> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(join(tmpdir(), `client-${process.pid}-${Math.random()}`), resolve));
  const address = server.address();
  const peer = connect(typeof address === 'string' ? address : '');
  const [socket]: Socket[] = await once(server, 'connection');
  assert.ok(socket);
  const broken = Promise.withResolvers<string>();
  const client = new ExecutorClient(socket, (why) => {
    broken.resolve(why);
    client.close(new RolloutError('sandbox-died', why));
  });
  peer.write(ready);
  await client.ready;
  peer.on('error', () => {});
  peer.once('data', () => peer.write(reply));
  const dispose = async () => {
    peer.destroy();
    server.close();
  };
  return { client, peer, broken: broken.promise, [Symbol.asyncDispose]: dispose };
}

const nonsense: [claim: string, reply: Buffer, seen: RegExp][] = [
  ['bytes that are no frame', Buffer.from('HTTP/1.1 200 OK\r\n\r\n'), /passes the limit/],
  ['a head that is not JSON', Buffer.from('\0\0\0\x01\0\0\0\0{'), /nonsense/],
  ['a head that is no reply', encodeFrame({ hello: 'there' }), /nonsense/],
  ['a reply to a call that is not open', encodeFrame({ id: 99, result: {} }), /call 99, which is not open/],
  ['a result of another shape', encodeFrame({ id: 1, result: { size: 'big' } }), /nonsense/],
  ['a negative size', encodeFrame({ id: 1, result: { size: -1 } }), /nonsense/],
  [
    'more bytes than were asked for',
    encodeFrame({ id: 1, result: { size: 11 } }, Buffer.alloc(11)),
    /11 bytes for file.read, more than 10/,
  ],
];
for (const [claim, reply, seen] of nonsense) {
  test(`${claim} ends the sandbox, and the call says what was seen`, async () => {
    await using pair = await openPair(reply);
    await assert.rejects(pair.client.call(read), { code: 'sandbox-died', message: seen });
    assert.match(await pair.broken, seen);
    await assert.rejects(pair.client.call(read), { code: 'sandbox-died' });
  });
}

test('a connection that closes ends every pending call', async () => {
  await using pair = await openPair(Buffer.alloc(0));
  const calls = [pair.client.call(read), pair.client.call(read)];
  pair.peer.destroy();
  for (const call of calls) await assert.rejects(call, { code: 'sandbox-died', message: /closed its connection/ });
});

test('an executor that never replies is given up at the deadline', async () => {
  await using pair = await openPair(Buffer.alloc(0));
  await assert.rejects(pair.client.call({ ...read, deadlineMs: 20 }), {
    code: 'sandbox-died',
    message: /no reply to file.read within 20 ms/,
  });
});

test('an error of the executor is an error of that call only', async () => {
  await using pair = await openPair(encodeFrame({ id: 1, error: { kind: 'not-found', message: 'no such file' } }));
  await assert.rejects(pair.client.call(read), { code: 'not-found', message: 'file.read: no such file' });
  pair.peer.once('data', () => pair.peer.write(encodeFrame({ id: 2, result: { size: 1 } }, Buffer.from('x'))));
  assert.equal((await pair.client.call(read)).body.toString(), 'x');
});

test('an aborted call throws at once, tells the executor, and its late reply disturbs nobody', async () => {
  await using pair = await openPair(Buffer.alloc(0));
  const readFrames = openFrameReader({ headBytes: 1000, bodyBytes: 1000 });
  const cancel = new AbortController();
  const call = pair.client.call({ ...read, signal: cancel.signal });
  await once(pair.peer, 'data');
  cancel.abort(new Error('no longer wanted'));
  await assert.rejects(call, /no longer wanted/);
  const [chunk]: Buffer[] = await once(pair.peer, 'data');
  assert.deepEqual(readFrames(chunk ?? Buffer.alloc(0))[0]?.head, { id: 1, method: 'cancel', params: { call: 1 } });
  pair.peer.write(encodeFrame({ id: 1, result: { size: 1 } }, Buffer.from('x')));
  pair.peer.once('data', () => pair.peer.write(encodeFrame({ id: 2, result: { size: 1 } }, Buffer.from('y'))));
  assert.equal((await pair.client.call(read)).body.toString(), 'y');
});
