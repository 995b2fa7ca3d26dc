// One rollout as text: from the service and from a file, with and without tokens.

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { openTokenizer } from '@millrace/model';
import { backendId, type Segment, sampling, type Trajectory } from '@millrace/protocol';
import { makeTempFolder, qwen3Folder } from '@millrace/testkit/plain';
import { FakeService } from '../../../client/test/fake-service.ts';
import { millrace, openIo } from '../fake-io.ts';

const numbers = (ids: number[], logprobs: number[] = []) => ({ tokenIds: Int32Array.from(ids), logprobs: Float32Array.from(logprobs) });

const segments: Segment[] = [
  {
    kind: 'prompt',
    turn: 0,
    text: '<|user|>How many files?<|assistant|>',
    messages: [{ role: 'user', content: 'How many files?' }],
    ...numbers([1, 2, 3]),
  },
  {
    kind: 'sampled',
    turn: 1,
    text: 'I look.',
    messages: [
      {
        role: 'assistant',
        content: 'I look.',
        reasoning: 'Not known yet.',
        tool_calls: [{ id: 'c1', name: 'bash', arguments: { command: 'ls\nwc -l' } }],
      },
    ],
    finish_reason: 'stop',
    backend: backendId.parse('b1'),
    policy_versions: { first: 3, last: 4 },
    ...numbers([10, 11], [-0.25, -1.5]),
  },
  {
    kind: 'observation',
    turn: 1,
    text: '',
    messages: [{ role: 'tool', content: 'a\x1b[2J\n1', tool_call_id: 'c1', name: 'bash' }],
    ...numbers([20]),
  },
  { kind: 'sampled', turn: 2, text: 'One.', messages: [], ...numbers([30], [-0.01]) },
];
const provenances = [
  {
    engine: 'vllm',
    engine_version: '0.32.0',
    dialect: 'vllm' as const,
    logprobs_mode: 'processed' as const,
    sampling: sampling.parse({ temperature: 0.5 }),
    tokenizer_sha256: 'a'.repeat(64),
    template_sha256: 'b'.repeat(64),
  },
];
const trajectory: Trajectory = { rolloutId: 'r1', attempt: 1, model: 'qwen', tools: [], provenances, segments };
const timings = {
  queued_ms: 1000,
  init_ms: 20,
  ready_ms: 0,
  run_ms: 2500,
  cache_wait_ms: 0,
  evaluate_wait_ms: 0,
  evaluate_ms: 30,
  model_ms: 2000,
  tool_ms: 400,
};
const result = {
  reward: 0.5,
  score: { passed: 1 },
  stop_reason: 'completed',
  turns: 2,
  tokens: { prompt: 3, sampled: 3, observation: 1 },
  malformed_calls: 1,
  policy_versions: { first: 3, last: 4 },
  backends: ['b1'],
  timings,
};

async function show(argv: readonly string[], prepare: (service: FakeService) => void = () => {}) {
  await using service = await FakeService.open();
  service.trajectories.set('r1', trajectory);
  service.end('r1', { reward: 0.5, result, retries: 1 });
  prepare(service);
  return await millrace(['show', ...argv, '--url', service.url], openIo());
}

test('every turn shows its role, its tool calls, and which backend and policy sampled it', async () => {
  const { code, out } = await show(['r1']);
  assert.equal(code, 0);
  for (const wanted of [
    /^rollout r1$/m,
    /^ {2}state {5}done, stopped by completed$/m,
    /^ {2}reward {4}0\.5$/m,
    /^ {2}time {6}waited 1\.0 s, init 20 ms, run 2\.5 s \(model 2\.0 s, tools 400 ms\),\s+evaluate 30 ms$/m,
    /^ {2}trainable 42\.9 % of its tokens$/m,
    /^assistant\n {2}Not known yet\.\n {2}I look\.$/m,
    /^ {2}engine {4}vllm 0\.32\.0, processed logprobs$/m,
    /^ {2}sampling {2}temperature 0\.5, top_p 1, /m,
    /^ {2}files {5}tokenizer a{12}, template b{12}$/m,
    /^── prompt ─+ 3 tokens from 0\n {2}<\|user\|>How many files\?<\|assistant\|>$/m,
    /^── turn 1 · sampled ─+ 2 tokens from 3 · finish stop · policy 3–4 · on b1$/m,
    /^ {2}→ bash\n {4}command: ls\n {13}wc -l$/m,
    /^tool bash\n {2}a␛\[2J\n {2}1$/m,
    /^── turn 2 · sampled ─+ 1 tokens from 6\n {2}One\.$/m,
  ]) {
    assert.match(out, wanted);
  }
});

test('tokens are shown by their ids, with logprobs on request', async () => {
  assert.match((await show(['r1', '--tokens'])).out, /token ids\n {2}\|10\|11\|\n/);
  assert.match((await show(['r1', '--logprobs'])).out, /token ids\n {2}\|10:-0\.25\|11:-1\.50\|\n/);
});

const failure = { code: 'sandbox-died', message: 'no space left', blame: 'sandbox', retryable: true, stage: 'run', attempt: 2 };

test('a failed rollout shows its failure, its blame, what to do, and its earlier failures', async () => {
  const earlier = { ...failure, code: 'backend-failed', message: 'no answer', attempt: 1 };
  const { code, out } = await show(['r2'], (service) => service.end('r2', { state: 'failed', reward: null, failure, failures: [earlier] }));
  assert.equal(code, 0);
  assert.match(
    out,
    /^ {2}failure {3}sandbox-died\n {2}blame {5}sandbox in run\n {2}message {3}no space left\n {2}hint {6}The sandbox ended/m,
  );
  assert.match(out, /^ {2}earlier {3}attempt 1: backend-failed: no answer$/m);
  assert.match(out, /\n\nIt has no trajectory\.\n/);
});

test('the start of an id is enough where only one rollout has it', async () => {
  const prepare = (service: FakeService) => {
    for (const id of ['r-abc1', 'r-abd2', 'r-abd3']) service.end(id);
  };
  assert.match((await show(['r-abc'], prepare)).out, /^rollout r-abc1$/m);
  const several = await show(['r-ab'], prepare);
  assert.equal(several.code, 2);
  assert.match(several.err, /r-ab is the start of several rollouts: r-abc1, r-abd2, r-abd3\n/);
});

test('an unknown id is named, with the command that lists rollouts', async () => {
  const { code, err } = await show(['unknown']);
  assert.equal(code, 1);
  assert.equal(err, 'millrace: no rollout is called unknown or begins with it on this service; to list them: millrace ls\n');
});

test('the output of submit is shown from its file as it is from the service', async () => {
  await using folder = await makeTempFolder('show');
  const file = join(folder.path, 'results.jsonl');
  const { out: json } = await show(['r1', '--json']);
  await writeFile(file, `{"id":"r10"}\n${json}`);
  const fromService = await show(['r1', '--logprobs']);
  const fromFile = await millrace(['show', 'r1', '--logprobs', '--file', file], openIo());
  assert.equal(fromFile.out, fromService.out);
  const missing = await millrace(['show', 'r2', '--file', file], openIo());
  assert.deepEqual([missing.code, missing.err], [1, `millrace: no rollout is called r2 or begins with it in ${file}\n`]);
  await writeFile(file, json);
  assert.equal((await millrace(['show', 'r', '--logprobs', '--file', file], openIo())).out, fromService.out);
  await writeFile(file, 'r1 nonsense\n');
  assert.equal((await millrace(['show', 'r1', '--file', file], openIo())).code, 2);
});

test('with a tokenizer, each token is shown by its text, white space and all', async () => {
  const ids = (await openTokenizer(qwen3Folder())).encode('hello  world\n');
  const spoken: Segment = { kind: 'prompt', turn: 0, text: 'hello  world\n', messages: [], ...numbers([...ids]) };
  const prepare = (service: FakeService) => void service.trajectories.set('r1', { ...trajectory, segments: [spoken] });
  const { out } = await show(['r1', '--tokenizer', qwen3Folder()], prepare);
  assert.match(out, /tokens\n {2}\|hello\|·\|·world\|⏎\|/);
});

test('two rollouts are compared from the turn in which they part, and equal ones are called so', async () => {
  const prepare = (service: FakeService) => {
    const [prompt, first, observation] = segments;
    if (!prompt || !first || !observation) throw new Error('the trajectory is shorter');
    const other: Segment = { ...first, messages: [{ role: 'assistant', content: 'I guess.' }], ...numbers([10, 99], [-0.25, -2]) };
    service.trajectories.set('r3', { ...trajectory, rolloutId: 'r3', segments: [prompt, other] });
    service.trajectories.set('r4', { ...trajectory, rolloutId: 'r4' });
    service.end('r3', { reward: 0, result });
    service.end('r4', { reward: 0.5, result });
    service.end('r5');
  };
  const { out } = await show(['r1', '--compare', 'r3'], prepare);
  assert.match(out, /^They share their first 4 tokens, and part from there\.$/m);
  assert.match(out, /its first 1 tokens are the same/);
  assert.match(out, /I look\.[\s\S]*I guess\./);
  assert.doesNotMatch(out, /How many files/);
  assert.match((await show(['r1', '--compare', 'r4'], prepare)).out, /^They are equal: 7 tokens\.$/m);
  assert.match((await show(['r1', '--compare', 'r5'], prepare)).out, /rollout r5 has no trajectory/);
});

test('a rollout is exported as data that can be read again, by the start of its id, and its conversation is scanned', async () => {
  await using folder = await makeTempFolder('export');
  const [file, copy] = [join(folder.path, 'results.jsonl'), join(folder.path, 'copy.jsonl')];
  await writeFile(file, (await show(['r1', '--json'])).out);
  const run = (...argv: string[]) => millrace(['export', ...argv], openIo());
  assert.equal((await run('--from', file, '--json', copy)).code, 0);
  const shown = await millrace(['show', 'r1', '--file', copy, '--logprobs'], openIo());
  assert.equal(shown.out, (await show(['r1', '--logprobs'])).out);
  const document = JSON.parse((await run('r', '--from', file, '--atif', '-')).out);
  assert.deepEqual([document.session_id, document.steps.length], ['r1', 3]);
  const scan = await millrace(['scan', '--from', file, '--pattern', 'looked=i look', '--json'], openIo());
  assert.deepEqual(JSON.parse(scan.out), { id: 'r1', name: 'looked', turn: 1, branch: 0, excerpt: JSON.parse(scan.out).excerpt });
  assert.match(JSON.parse(scan.out).excerpt, /I look\.\nbash ls/);
  assert.equal((await millrace(['scan', '--from', file, '--pattern', '('], openIo())).code, 2);
  for (const argv of [[], ['--html', 'a', '--json', 'b'], ['--json', '-', '--from', join(folder.path, 'none')], ['--json', '-']])
    assert.equal((await run(...argv)).code, 2, argv.join(' '));
});
