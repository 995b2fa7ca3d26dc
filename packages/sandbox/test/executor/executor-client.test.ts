// The worker's client against an executor that the agent has taken over: for any invalid reply, it reports the problem and disconnects.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileReadReply, RolloutError } from '@millrace/protocol';
import { ExecutorClient } from '../../src/executor/executor-client.ts';
import { encodeFrame, openFrameReader } from '../../src/executor/wire/frames.ts';

const ready = encodeFrame({ event: 'ready', pid: 1, protocol: 1 });
const read = { method: 'file.read', params: {}, reply: fileReadReply, maxBytes: 10, deadlineMs: 5000 } as const;

/** A client whose peer replies to the first call with `reply`. `broken` is the problem that the client reported. */
async function openPair(reply: Buffer): Promise<{ client: ExecutorClient; peer: Socket; broken: Promise<string> } & AsyncDisposable> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(join(tmpdir(), `client-${process.pid}-${Math.random()}`), resolve));
  const address = server.address();
  const peer = connect(typeof address === 'string' ? address : '');
  const [socket]: Socket[] = await once(server, 'connection');
  assert.ok(socket);
  const broken = Promise.withResolvers<string>();
  const client = new ExecutorClient(socket, {
    onBroken(why) {
      broken.resolve(why);
      client.close(new RolloutError('sandbox-died', why));
    },
    isOwnLimit: (errno) => errno !== 'ENFILE',
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

const invalid: [claim: string, reply: Buffer, seen: RegExp][] = [
  ['bytes that are not a frame', Buffer.from('HTTP/1.1 200 OK\r\n\r\n'), /exceeds the limit/],
  ['a head that is not JSON', Buffer.from('\0\0\0\x01\0\0\0\0{'), /invalid frame/],
  ['a head that is not a reply', encodeFrame({ hello: 'there' }), /invalid frame/],
  ['a reply to a call that is not open', encodeFrame({ id: 99, result: {} }), /call 99, which is not open/],
  ['a result of the wrong type', encodeFrame({ id: 1, result: { size: 'big' } }), /invalid frame/],
  ['a negative size', encodeFrame({ id: 1, result: { size: -1 } }), /invalid frame/],
  ['more bytes than requested', encodeFrame({ id: 1, result: { size: 11 } }, Buffer.alloc(11)), /11 bytes for file.read, more than 10/],
];
for (const [claim, reply, seen] of invalid) {
  test(`${claim}: the sandbox ends, and the call reports the problem`, async () => {
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

test('the client gives up on an executor that has not replied by the deadline', async () => {
  await using pair = await openPair(Buffer.alloc(0));
  await assert.rejects(pair.client.call({ ...read, deadlineMs: 20 }), {
    code: 'sandbox-died',
    message: /no reply to file.read within 20 ms/,
  });
});

test('an error that the executor reports fails only that call', async () => {
  await using pair = await openPair(encodeFrame({ id: 1, error: { kind: 'not-found', message: 'no such file' } }));
  await assert.rejects(pair.client.call(read), { code: 'not-found', message: 'file.read: no such file' });
  pair.peer.once('data', () => pair.peer.write(encodeFrame({ id: 2, result: { size: 1 } }, Buffer.from('x'))));
  assert.equal((await pair.client.call(read)).body.toString(), 'x');
});

test('an aborted call throws at once, is cancelled in the executor, and its late reply is ignored', async () => {
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

test('what the machine has none left of is not a limit of the sandbox', async () => {
  for (const [errno, code] of [
    ['ENFILE', 'sandbox-failed'],
    ['ENOSPC', 'sandbox-limit'],
  ] as const) {
    await using pair = await openPair(encodeFrame({ id: 1, error: { kind: 'limit', message: `${errno}: none left`, errno } }));
    await assert.rejects(pair.client.call(read), { code, message: /none left/ });
  }
});
