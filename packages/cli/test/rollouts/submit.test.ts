// The submit command against a service in memory.

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Trajectory } from '@millrace/protocol';
import { makeTempFolder } from '@millrace/testkit/plain';
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

test('what is in the way is shown next to the progress', async () => {
  await using service = await FakeService.open();
  answerWithHints(service);
  const io = openIo({ stdin: line('a'), terminal: true });
  const ended = endWhen(service, () => /no backend has joined.*millrace backend add/.test(io.err()));
  const { code, err } = await millrace(['submit', '--url', service.url], io);
  await ended;
  assert.equal(code, 0);
  assert.match(err, /! no worker is running/);
});

test('without a terminal a hint is one line, written once', async () => {
  await using service = await FakeService.open();
  answerWithHints(service);
  const io = openIo({ stdin: line('a') });
  const ended = endWhen(service, () => io.err().includes('no backend has joined'));
  const { err } = await millrace(['submit', '--url', service.url], io);
  await ended;
  assert.equal(err.match(/^! no backend has joined.*$/gm)?.length, 1);
});

test('a service that stays down costs no rollout: the ids are named, and the file that is written continues', async () => {
  await using service = await FakeService.open();
  await using folder = await makeTempFolder('resume');
  const io = openIo({ stdin: ['a', 'b', 'c'].map(line).join('\n') });
  const { port } = service;
  service.onSubmit = () => {
    service.end('b');
    void until(() => io.out().includes('"b"')).then(() => service.stop());
  };
  const gaveUp = await inFolder(folder.path, () => millrace(['submit', '--patience', '1s', '--max-tokens', '7', '--url', service.url], io));
  assert.deepEqual([gaveUp.code, ids(gaveUp.out)], [1, ['b']]);
  assert.match(gaveUp.err, /2 rollouts have not been written: a, c\n/);
  const [, command = ''] = /\n {2}millrace (submit .*)\n/.exec(gaveUp.err) ?? [];
  service.onSubmit = () => {};
  await service.start(port);
  for (const id of ['a', 'c']) service.end(id);
  const resumed = await inFolder(folder.path, () => millrace(command.split(' '), openIo()));
  assert.deepEqual([resumed.code, ids(resumed.out).sort()], [0, ['a', 'c']], resumed.err);
});

test('a service that comes back within the patience is waited for', async () => {
  await using service = await FakeService.open();
  const io = openIo({ stdin: line('a') });
  const { port } = service;
  service.onSubmit = () => {
    service.onSubmit = () => {};
    void until(() => service.streams.size > 0).then(async () => {
      await service.stop();
      await until(() => io.err().includes('No answer from'));
      await service.start(port);
      service.end('a');
    });
  };
  const { code, out } = await millrace(['submit', '--url', service.url], io);
  assert.deepEqual([code, ids(out)], [0, ['a']]);
});

test('a second Ctrl-C leaves at once, with the ids of what is left', async () => {
  await using service = await FakeService.open();
  await using folder = await makeTempFolder('resume');
  const io = openIo({ stdin: line('a') });
  service.fault = (request) => {
    if (request.method !== 'DELETE') return false;
    setImmediate(io.interrupt);
    return true;
  };
  service.onSubmit = () => setImmediate(io.interrupt);
  const { code, err } = await inFolder(folder.path, () => millrace(['submit', '--url', service.url], io));
  assert.equal(code, 1);
  assert.match(err, /1 rollout has not been written: a\nIt is in millrace-resume-.*\.jsonl\. To continue/);
});

test('options for sampling and limits are sent with every rollout', async () => {
  await using service = await FakeService.open();
  let sent = '';
  service.fault = (request, _response, body) => {
    if (request.method === 'POST') sent = body;
    return false;
  };
  service.onSubmit = () => service.end('a');
  const options = ['--max-tokens', '64', '--temperature', '0.5', '--sampling', 'top_p=0.9', '--limits', 'max_turns=3'];
  await millrace(['submit', ...options, '--url', service.url], openIo({ stdin: line('a') }));
  const [{ sampling, limits }] = JSON.parse(sent).rollouts;
  assert.deepEqual([sampling, limits], [{ top_p: 0.9, max_tokens: 64, temperature: 0.5 }, { max_turns: 3 }]);
});

test('what the service refuses is named by file and line', async () => {
  await using service = await FakeService.open();
  await using folder = await makeTempFolder('submit');
  const file = join(folder.path, 'tasks.jsonl');
  await writeFile(file, `${line('a')}\n\n${line('b')}\n`);
  service.fault = (request, response) => {
    if (request.method !== 'POST') return false;
    const faults = [{ path: 'rollouts[1].task.answer', message: 'expected string' }];
    const error = { code: 'task-invalid', message: 'rollouts[1].task.answer: expected string', blame: 'caller', retryable: false };
    send(response, 400, { error: { ...error, details: { faults } } });
    return true;
  };
  const { code, err } = await millrace(['submit', file, '--url', service.url], openIo());
  assert.equal(code, 1);
  assert.match(err, new RegExp(`millrace: ${file}:3: task\\.answer: expected string\n`));
});

/** As a service without workers and backends does. */
function answerWithHints(service: FakeService): void {
  service.fault = (request, response) => {
    if (request.url !== '/v1/status') return false;
    const hints = ['no worker is running', 'no backend has joined: add one with `millrace backend add URL`'];
    send(response, 200, { ...service.status(), hints });
    return true;
  };
}

/** Ends rollout `a` once the condition holds. */
async function endWhen(service: FakeService, isDue: () => boolean): Promise<void> {
  await until(() => isDue() && service.rollouts.has('a'));
  service.end('a');
}

async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await new Promise((resolve) => setTimeout(resolve, 10));
}

async function inFolder<T>(path: string, work: () => Promise<T>): Promise<T> {
  const before = process.cwd();
  process.chdir(path);
  try {
    return await work();
  } finally {
    process.chdir(before);
  }
}
