// Traces of a whole service: each rollout is a tree of stages, turns, model calls and tool calls, with the names of the conventions; log
// lines and results name their trace; without a collector nothing is loaded.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { checkRolloutTrace, openFakeBackend, openTraceReceiver, qwen3Folder, renderCall, TestService } from '@millrace/testkit';
import * as conventions from '@opentelemetry/semantic-conventions/incubating';

const policy = ({ turn }: { readonly turn: number }) =>
  turn === 0 ? renderCall('bash', { command: 'echo hello' }) : renderCall('finish', { answer: '4' });

const sum = { scenario: 'math', task: { question: '2 + 2 = ?', answer: '4' } };

test('a rollout is one trace with the names of the conventions, and its result and its log lines name it', async () => {
  await using receiver = await openTraceReceiver();
  await using backend = await openFakeBackend({ policy: ({ turn }) => ({ text: policy({ turn }) }), model: 'tiny' });
  await using service = await TestService.open({ workers: 1, tokenizer: qwen3Folder(), tracing: { url: receiver.url } });
  await service.client.backends.join({ url: backend.url, model: 'tiny' });
  const shell = { scenario: 'shell', task: { instruction: 'Say hello.', check: 'true' } };
  await service.client.submit([{ ...sum, id: 'bad', scenario: 'shell', task: { instruction: 'x', setup: 'exit 3', check: 'true' } }]);
  await service.client.submit([{ ...shell, id: 'good' }]);
  const [good, bad] = await Promise.all(['good', 'bad'].map((id) => service.client.wait(id)));
  const traceId = good?.result?.trace_id ?? assert.fail('the result names no trace');
  await receiver.rootOf(traceId);
  assert.deepEqual(checkRolloutTrace(receiver.spans, { traceId, rolloutId: 'good', turns: good?.result?.turns ?? 0 }), []);

  const known = new Set<unknown>(Object.values(conventions));
  const used = new Set(receiver.spans.flatMap(({ attributes }) => Object.keys(attributes)));
  const foreign = [...used].filter((name) => !name.startsWith('rl.') && !known.has(name));
  assert.deepEqual(foreign, [], 'attributes that OpenTelemetry does not name');
  const operations = new Set(receiver.spans.flatMap(({ attributes }) => attributes['gen_ai.operation.name'] ?? []));
  assert.deepEqual([...operations].toSorted(), ['chat', 'execute_tool']);

  assert.equal(bad?.failure?.code, 'init-failed');
  const lines = (await readFile(service.logPath, 'utf8')).split('\n').filter((line) => line.includes('"bad"'));
  const failure = lines.map((line) => JSON.parse(line)).find(({ event }) => event === 'rollout-failure');
  const root = await receiver.rootOf(failure?.traceId ?? assert.fail(`no line of the rollout names its trace:\n${lines.join('\n')}`));
  assert.deepEqual([root.isError, root.attributes['error.type'], root.attributes['rl.sample.id']], [true, 'init-failed', 'bad']);
});

test('a service without a collector names no trace', async () => {
  await using backend = await openFakeBackend({ policy: ({ turn }) => ({ text: policy({ turn }) }) });
  await using service = await TestService.open({ workers: 1, tokenizer: qwen3Folder() });
  await service.client.backends.join({ url: backend.url });
  await service.client.submit([{ ...sum, id: 'one' }]);
  assert.equal((await service.client.wait('one')).result?.trace_id, undefined);
});
