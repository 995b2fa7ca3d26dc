// Spans through the SDK: a tree with the right times and errors, sampled by share, and a collector that is gone delays nothing for long.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openTraceReceiver } from '@millrace/testkit';
import { openTracing } from '../src/index.ts';

const options = { headers: {}, share: 1, attributes: { 'service.name': 'millrace' } };

test('a trace is a tree with attributes, and a failure has its type', async () => {
  await using receiver = await openTraceReceiver();
  await using tracing = await openTracing({ ...options, url: receiver.url });
  const root = tracing.beginTrace({ name: 'root', attributes: { a: 1, none: undefined, list: ['x'] } });
  const child = root?.begin({ name: 'child', isCall: true });
  child?.end('backend-failed');
  root?.note({ b: 'two' });
  root?.end();
  await tracing[Symbol.asyncDispose]();
  const [first, second] = receiver.spans;
  assert.deepEqual([first?.name, first?.parentSpanId, first?.isError, first?.kind], ['child', second?.spanId, true, 3]);
  assert.equal(first?.attributes['error.type'], 'backend-failed');
  assert.deepEqual([second?.name, second?.traceId, second?.isError], ['root', root?.traceId, false]);
  assert.deepEqual(second?.attributes, { a: 1, list: ['x'], b: 'two' });
  assert.equal(second?.resource['service.name'], 'millrace');
});

test('a share of the traces is recorded, and the others have no span at all', async () => {
  await using receiver = await openTraceReceiver();
  await using tracing = await openTracing({ ...options, url: receiver.url, share: 0.25 });
  const begun = Array.from({ length: 2000 }, () => tracing.beginTrace({ name: 'root' })).filter((span) => span !== undefined);
  assert.ok(begun.length > 350 && begun.length < 650, `${begun.length} of 2000`);
  for (const span of begun) span.end();
  await tracing[Symbol.asyncDispose]();
  assert.equal(receiver.spans.length, begun.length);
});

test('a collector that is gone ends in dropped spans, not in an error', async () => {
  const tracing = await openTracing({ ...options, url: 'http://127.0.0.1:1/v1/traces' });
  tracing.beginTrace({ name: 'root' })?.end();
  await tracing[Symbol.asyncDispose]();
});
