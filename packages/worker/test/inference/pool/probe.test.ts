// The probes of a backend that may be down: what they ask a server, and what they never do.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '@millrace/base/clock';
import { silentLog } from '@millrace/base/log';
import { Pace } from '@millrace/base/pace';
import { type BackendRecord, openBackend } from '@millrace/engines';
import { backendId, type Dialect } from '@millrace/protocol';
import { openFakeBackend } from '@millrace/testkit';
import { Agent } from 'undici';
import { openServer } from '../../../../engines/test/open-server.ts';
import { checkHealth, tryOut } from '../../../src/inference/pool/probe.ts';

const { signal } = new AbortController();

function makeRecord(url: string, dialect: Dialect): BackendRecord {
  return { id: backendId.parse('b1'), url, dialect, policyVersion: 0, state: 'up' };
}

test('a health check samples nothing: SGLang is not asked for /health, which generates a token', async () => {
  const paths: (string | undefined)[] = [];
  await using server = await openServer((request, response) => {
    paths.push(request.url);
    response.writeHead(200).end();
  });
  const dispatcher = new Agent();
  for (const dialect of ['vllm', 'sglang', 'llamacpp'] as const)
    await checkHealth(makeRecord(server.url, dialect), { signal, clock: systemClock, dispatcher });
  await dispatcher.destroy();
  assert.deepEqual(paths, ['/health', '/v1/models', '/health']);
});

test('a probe can be answered by a server that returns sampling masks, which needs a top_k', async () => {
  await using fake = await openFakeBackend({ policy: () => ({ text: 'yes' }) });
  const dispatcher = new Agent();
  for (const dialect of ['vllm', 'vllm-completions', 'sglang', 'llamacpp'] as const) {
    const backend = openBackend(makeRecord(fake.url, dialect), { log: silentLog, pace: new Pace(), dispatcher });
    await tryOut(backend, { signal, clock: systemClock, dispatcher });
  }
  await dispatcher.destroy();
  assert.deepEqual(
    fake.requests.map(({ sampling: { top_k, temperature } }) => [top_k, temperature]),
    Array(4).fill([1, 1]),
  );
});
