// The submit command against a service in memory.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Trajectory } from '@millrace/protocol';
import { FakeService, send } from '../../../client/test/fake-service.ts';
import { millrace, openIo } from '../fake-io.ts';

const line = (id: string) => JSON.stringify({ id, scenario: 'math', task: { question: '6 * 7?' } });
const ids = (out: string) =>
  out
    .trim()
    .split('\n')
    .map((text) => JSON.parse(text).id);

test('rollouts are written in the order in which they end, and exit code 0 means that all are done', async () => {
  await using service = await FakeService.open();
  service.onSubmit = () => {
    for (const id of ['b', 'a']) service.end(id);
  };
  const { code, out, err } = await millrace(
    ['submit'],
    openIo({ stdin: `${line('a')}\n\n${line('b')}\n`, env: { MILLRACE_URL: service.url } }),
  );
  assert.deepEqual([code, ids(out)], [0, ['b', 'a']]);
  assert.match(err, /^2 rollouts in .*: 2 done, 0 failed, 0 cancelled; mean reward 1\.000 of 2\n$/);
});

test('a failed rollout is counted by its reason and gives exit code 1', async () => {
  await using service = await FakeService.open();
  const failure = { code: 'sandbox-died', message: 'it died', blame: 'sandbox', retryable: true, stage: 'run', attempt: 1 };
  service.onSubmit = () => service.end('a', { state: 'failed', reward: null, failure });
  const { code, err } = await millrace(['submit', '--url', service.url, '-'], openIo({ stdin: line('a') }));
  assert.equal(code, 1);
  assert.match(err, /0 done, 1 failed, 0 cancelled\n {2}1 × sandbox-died \(blame: sandbox\), for example: it died/);
});

test('trajectories are added on request, null where there is none', async () => {
  await using service = await FakeService.open();
  const segments = [
    { kind: 'sampled' as const, turn: 1, text: 'hi', messages: [], tokenIds: Int32Array.of(7), logprobs: Float32Array.of(-0.5) },
  ];
  service.trajectories.set('a', { rolloutId: 'a', attempt: 1, model: 'm', tools: [], segments } satisfies Trajectory);
  service.onSubmit = () => {
    for (const id of ['a', 'b']) service.end(id);
  };
  const { out } = await millrace(['submit', '--trajectories', '--url', service.url], openIo({ stdin: `${line('a')}\n${line('b')}` }));
  const [a, b] = out
    .trim()
    .split('\n')
    .map((text) => JSON.parse(text));
  assert.deepEqual(a.trajectory.segments[0].token_ids, [7]);
  assert.equal(b.trajectory, null);
});

test('bad lines are named by their number, and nothing is submitted', async () => {
  await using service = await FakeService.open();
  const stdin = [line('a'), '{"scenario":"math"}', 'nonsense', '[]', line('a'), '{"scenario":"math","task":{},"tasks":1}'].join('\n');
  const { code, out, err } = await millrace(['submit', '--url', service.url], openIo({ stdin }));
  assert.deepEqual([code, out, service.requests], [2, '', []]);
  assert.match(err, /nothing was submitted: 5 bad lines\n/);
  assert.match(err, /stdin:2: task: /);
  assert.match(err, /stdin:3: not JSON: /);
  assert.match(err, /stdin:4: not a JSON object\n/);
  assert.match(err, /stdin:5: id a is already on line 1\n/);
  assert.match(err, /stdin:6: .*tasks/);
});

test('Ctrl-C cancels what has not ended and says how many', async () => {
  await using service = await FakeService.open();
  const io = openIo({ stdin: ['a', 'b', 'c'].map(line).join('\n') });
  service.onSubmit = () => {
    service.end('b');
    setImmediate(io.interrupt);
  };
  const { code, out, err } = await millrace(['submit', '--url', service.url], io);
  assert.equal(code, 1);
  assert.deepEqual(ids(out).sort(), ['a', 'b', 'c']);
  assert.match(err, /cancelling \d rollouts; press Ctrl-C again to leave at once\n/);
  assert.match(err, /2 rollouts were asked to stop\n3 rollouts in .*: 1 done, 0 failed, 2 cancelled/);
});

test('a refused submission cancels what was accepted before it', async () => {
  await using service = await FakeService.open();
  service.fault = (request, response, body) => {
    if (request.method !== 'POST' || !body.includes('"bad"')) return false;
    send(response, 400, { error: { code: 'task-invalid', message: 'rollouts.0.task is bad', blame: 'caller', retryable: false } });
    return true;
  };
  const stdin = [...Array.from({ length: 1000 }, (_, n) => line(`r${n}`)), line('bad')].join('\n');
  const { code, err } = await millrace(['submit', '--url', service.url], openIo({ stdin }));
  assert.equal(code, 1);
  assert.match(err, /1,000 rollouts that were accepted before are cancelled\nmillrace: rollouts\.0\.task is bad\n/);
});

test('an empty file is not an error', async () => {
  const { code, err } = await millrace(['submit'], openIo({ stdin: '\n' }));
  assert.deepEqual([code, err], [0, 'there is nothing to submit\n']);
});
