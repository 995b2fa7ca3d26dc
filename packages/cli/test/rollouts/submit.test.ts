// The submit command against a service in memory.

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Trajectory } from '@millrace/protocol';
import { makeTempFolder } from '@millrace/testkit/plain';
import { FakeService, send } from '../../../client/test/fake-service.ts';
import { millrace, openIo } from '../fake-io.ts';
import { openRealService } from '../real-service.ts';

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
  assert.deepEqual([code, out, service.rollouts.size], [2, '', 0]);
  assert.match(err, /nothing was submitted: 5 of 6 lines cannot be run\n/);
  assert.match(err, /stdin:2: task: /);
  assert.match(err, /stdin:3: not JSON: /);
  assert.match(err, /stdin:4: not a JSON object\n/);
  assert.match(err, /stdin:5: id a is already on line 1\n/);
  assert.match(err, /stdin:6: .*tasks/);
});

test('Ctrl-C leaves what was submitted running, with a file that continues and a file that cancels', async () => {
  await using service = await FakeService.open();
  await using folder = await makeTempFolder('resume');
  const io = openIo({ stdin: ['a', 'b', 'c'].map(line).join('\n') });
  service.onSubmit = () => {
    service.end('b');
    void until(() => io.out().includes('"b"')).then(io.interrupt);
  };
  const { code, out, err } = await inFolder(folder.path, () => millrace(['submit', '--url', service.url], io));
  assert.deepEqual([code, ids(out)], [1, ['b']]);
  assert.match(
    err,
    /2 rollouts have not been written: a, c\nThey are in millrace-resume-.*\.jsonl\. What was submitted goes on\. To continue/,
  );
  assert.equal(service.rollouts.get('a')?.state, 'queued');
  service.end('a');
  const [, command = ''] = /\n {2}millrace (cancel .*)\n/.exec(err) ?? [];
  const cancelled = await inFolder(folder.path, () => millrace([...command.split(' '), '--yes'], openIo()));
  assert.equal(cancelled.out, '1 rollouts are cancelled; 1 had already ended, 0 were never submitted\n', cancelled.err);
  assert.equal(service.rollouts.get('c')?.state, 'cancelled');
});

test('detached rollouts go on, and their output, submitted again, waits for the results', async () => {
  await using service = await FakeService.open();
  await using folder = await makeTempFolder('submit');
  const started = await millrace(['submit', '--detach', '--url', service.url], openIo({ stdin: `${line('a')}\n${line('b')}` }));
  assert.deepEqual([started.code, ids(started.out)], [0, ['a', 'b']], started.err);
  assert.equal(service.rollouts.get('a')?.state, 'queued');
  const file = join(folder.path, 'started.jsonl');
  await writeFile(file, started.out);
  for (const id of ['b', 'a']) service.end(id);
  const results = await millrace(['submit', file, '--url', service.url], openIo());
  assert.deepEqual([results.code, ids(results.out).sort()], [0, ['a', 'b']]);
  await writeFile(file, '{"id":"a"}\n{}\n');
  const wrong = await millrace(['cancel', '--file', file, '--url', service.url], openIo());
  assert.equal(wrong.code, 2);
  assert.match(wrong.err, /started\.jsonl:2: there is no id/);
});

test('a line that the service refuses costs no rollout: nothing is submitted, and every bad line is named', async () => {
  await using service = await openRealService();
  const task = { question: '6 * 7?', answer: '42' };
  const lines = Array.from({ length: 1500 }, (_, n) => ({ id: `r${n}`, scenario: 'math', task: n === 1499 || n === 3 ? {} : task }));
  const stdin = [...lines.map((one) => JSON.stringify(one)), 'nonsense'].join('\n');
  const refused = await service.run(['submit'], { stdin });
  assert.deepEqual([refused.code, refused.out], [2, '']);
  assert.match(refused.err, /nothing was submitted: 3 of 1,501 lines cannot be run\n/);
  assert.match(refused.err, /stdin:4, 1500: task\.question: .*\n {2}stdin:1501: not JSON/s);
  assert.match(refused.err, /To submit the others: add --skip-bad\n/);
  assert.deepEqual(await Array.fromAsync(service.client.list()), []);
  const skipped = await service.run(['submit', '--skip-bad', '--detach'], { stdin });
  assert.deepEqual([skipped.code, ids(skipped.out).length], [0, 1498]);
  assert.match(skipped.err, /3 of 1,501 lines cannot be run and are skipped:\n/);
  assert.equal((await service.client.get('r1498')).state, 'queued');
});

test('a misspelt scenario, field, limit or state comes with what was probably meant, as wrong input', async () => {
  await using service = await openRealService();
  const task = { question: '6 * 7?', answer: '42' };
  const table: [string[], unknown, RegExp][] = [
    [['submit'], { scenario: 'maths', task }, /scenario: no scenario is named "maths"; did you mean math\?; known: math, /],
    [
      ['submit'],
      { scenario: 'math', task: { question: '', anwser: '4' } },
      /task\.answer: is missing\n.*task\.anwser: unknown field; did you mean answer\?/,
    ],
    [['submit'], { scenario: 'math', task, limit: {} }, /limit: unknown field; did you mean limits\?/],
    [['submit'], { task }, /scenario: is missing \(or use --scenario\)/],
    [['submit', '--limits', 'max_turn=3'], { scenario: 'math', task }, /--limits max_turn: unknown field; did you mean max_turns\?/],
    [
      ['submit', '--sampling', 'temprature=1'],
      { scenario: 'math', task },
      /--sampling temprature: unknown field; did you mean temperature\?/,
    ],
    [
      ['submit', '--scenario', 'maht'],
      { scenario: 'math', task },
      /--scenario maht is for lines that name none, .* stdin names its own: math/,
    ],
    [['eval', '--scenario', 'maht'], { scenario: 'math', task }, /--scenario maht is for lines that name none/],
    [['eval', '--scenario', 'mth', '--detach'], task, /no scenario is named "mth"; did you mean math\?/],
    [['ls', '--state', 'faild'], '', /--state faild is not one of .*; did you mean failed\?/],
  ];
  for (const [argv, input, wanted] of table) {
    const { code, err } = await service.run(argv, { stdin: JSON.stringify(input) });
    assert.equal(code, 2, argv.join(' '));
    assert.match(err, wanted);
  }
});

test('an address that ends in /v1 is the same service', async () => {
  await using service = await openRealService();
  assert.equal((await service.run(['ls', '--url', `${service.url}/v1/`])).code, 0);
});

test('what was accepted before a refusal is still written', async () => {
  await using service = await FakeService.open();
  await using folder = await makeTempFolder('submit');
  service.fault = (request, response, body) => {
    if (request.method !== 'POST' || request.url?.includes('check') || !body.includes('"taken"')) return false;
    send(response, 409, { error: { code: 'conflict', message: 'these ids exist: taken', blame: 'caller', retryable: false } });
    for (const id of service.rollouts.keys()) service.end(id);
    return true;
  };
  const stdin = [...Array.from({ length: 1000 }, (_, n) => line(`r${n}`)), line('taken')].join('\n');
  const { code, out, err } = await inFolder(folder.path, () => millrace(['submit', '--url', service.url], openIo({ stdin })));
  assert.deepEqual([code, ids(out).length], [1, 1000]);
  assert.match(err, /1 rollout has not been written: taken\n.*millrace: these ids exist: taken\n/s);
});

test('a file without tasks is wrong input', async () => {
  const { code, err } = await millrace(['submit'], openIo({ stdin: '\n' }));
  assert.equal(code, 2);
  assert.match(err, /stdin has no tasks/);
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

test('options for sampling and limits are sent with every rollout', async () => {
  await using service = await FakeService.open();
  let sent = '';
  service.fault = (request, _response, body) => {
    if (request.method === 'POST') sent = body; // the last one submits
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
    const faults = [{ index: 1, path: 'rollouts[1].task.answer', message: 'expected string' }];
    const error = { code: 'task-invalid', message: 'rollouts[1].task.answer: expected string', blame: 'caller', retryable: false };
    send(response, 400, { error: { ...error, details: { faults } } });
    return true;
  };
  const { code, err } = await millrace(['submit', file, '--url', service.url], openIo());
  assert.equal(code, 2);
  assert.match(err, new RegExp(`  ${file}:3: task\\.answer: expected string\n`));
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
