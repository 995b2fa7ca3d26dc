// The session of a rollout in the address of a gateway, over a real HTTP server.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { silentLog } from '@millrace/base/log';
import { Pace } from '@millrace/base/pace';
import { backendId } from '@millrace/protocol';
import { hasSession, toSessionAddress } from '../../src/calls/session-address.ts';
import { openBackend } from '../../src/open-backend.ts';

test('the place of the session is filled, also where a URL was encoded, and a name cannot leave its place', () => {
  assert.equal(toSessionAddress('http://a/sessions/{session}/v1', 'r-1'), 'http://a/sessions/r-1/v1');
  assert.equal(toSessionAddress('http://a/sessions/%7Bsession%7D', 'r/../1'), 'http://a/sessions/r%2F..%2F1');
  assert.equal(toSessionAddress('http://a/sessions/{session}'), 'http://a/sessions/probe');
  assert.deepEqual([hasSession('http://a/{session}'), hasSession('http://a/session')], [true, false]);
});

test('each call goes to the address of its rollout and asks for a logprob, which a gateway would otherwise remove', async () => {
  const seen: unknown[] = [];
  const server = createServer(async (request, reply) => {
    seen.push(request.url, JSON.parse(await text(request)).logprobs);
    const logprobs = { tokens: ['token_id:7'], token_logprobs: [-0.5] };
    reply.setHeader('content-type', 'application/json').end(JSON.stringify({ choices: [{ logprobs, finish_reason: 'stop' }] }));
  }).listen(0, '127.0.0.1');
  try {
    await new Promise((resolve) => server.once('listening', resolve));
    const address = server.address();
    const url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}/sessions/{session}`;
    const record = { id: backendId.parse('g'), url, dialect: 'vllm-completions', policyVersion: 0, state: 'up' } as const;
    const backend = openBackend(record, { log: silentLog, pace: new Pace() });
    const sampling = {
      temperature: 1,
      top_p: 1,
      top_k: 0,
      min_p: 0,
      repetition_penalty: 1,
      presence_penalty: 0,
      frequency_penalty: 0,
      max_tokens: 4,
    };
    const common = { promptJson: Buffer.from('1,2'), promptTokens: 2, maxTokens: 4, stopTokenIds: [], sampling, requestId: 'q' };
    for (const sessionId of ['r-1', 'r-2']) {
      const { tokenIds } = await backend.generate({ ...common, sessionId, signal: AbortSignal.timeout(10_000) });
      assert.deepEqual([...tokenIds], [7]);
    }
    assert.deepEqual(seen, ['/sessions/r-1/v1/completions', 1, '/sessions/r-2/v1/completions', 1]);
  } finally {
    server.closeAllConnections();
    server.close();
  }
});
