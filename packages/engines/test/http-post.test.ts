// A call to a backend ends even if the server misuses its socket.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { test } from 'node:test';
import { Pace } from '@millrace/base/pace';
import { RolloutError } from '@millrace/protocol';
import { SilenceWatch } from '../src/calls/silence.ts';
import { post } from '../src/http-post.ts';

test('a call to a server that accepts it and never reads it fails', async () => {
  const sockets: Socket[] = [];
  const server = createServer({ pauseOnConnect: true }, (socket) => sockets.push(socket.on('error', () => {}))).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  using silence = new SilenceWatch(async () => {}).start({ firstMs: 50, nextMs: 50 });
  const call = { url: `http://127.0.0.1:${port}/`, headers: {}, maxReplyBytes: 1, signal: new AbortController().signal, silence };
  try {
    await assert.rejects(post({ ...call, pace: new Pace(), body: [Buffer.alloc(64 << 20, '1')] }), (error) => {
      return error instanceof RolloutError && error.code === 'backend-failed' && /nothing came for \d+\.\d+ s/.test(error.message);
    });
  } finally {
    for (const socket of sockets) socket.destroy();
    server.close();
  }
});
