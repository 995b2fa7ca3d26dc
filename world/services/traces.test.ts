// Traces through a real OpenTelemetry collector: what it understood of a rollout and sends on is the whole tree, with the names of the
// conventions; while it is gone, rollouts go on.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  checkRolloutTrace,
  makeTempFolder,
  openFakeBackend,
  openTraceReceiver,
  qwen3Folder,
  renderCall,
  TestService,
} from '@millrace/testkit';
import { openCollector } from '../engines/otelcol.ts';

const shell = { scenario: 'shell', task: { instruction: 'Say hello.', check: 'true' } };

test('a real collector receives the spans of each rollout, and its end delays none', { timeout: 900_000 }, async () => {
  await using folder = await makeTempFolder('millrace-otelcol');
  await using receiver = await openTraceReceiver();
  const collector = await openCollector(folder.path, receiver.url);
  await using backend = await openFakeBackend({
    policy: ({ turn }) => ({ text: turn < 2 ? renderCall('bash', { command: `echo ${turn}` }) : renderCall('finish', { answer: 'x' }) }),
    model: 'tiny',
  });
  await using service = await TestService.open({ workers: 1, tokenizer: qwen3Folder(), tracing: { url: collector.url } });
  await service.client.backends.join({ url: backend.url, model: 'tiny' });
  const ids = Array.from({ length: 8 }, (_, index) => `r-${index}`);
  await service.client.submit(ids.map((id) => ({ ...shell, id })));
  for (const id of ids) {
    const { result } = await service.client.wait(id);
    const traceId = result?.trace_id ?? assert.fail('the result names no trace');
    await receiver.rootOf(traceId);
    assert.deepEqual(checkRolloutTrace(receiver.spans, { traceId, rolloutId: id, turns: 3 }), [], id);
  }
  await collector[Symbol.asyncDispose]();
  await service.client.submit([{ ...shell, id: 'after' }]);
  assert.equal((await service.client.wait('after')).reward, 1);
});
