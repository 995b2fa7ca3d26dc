// `millrace ls` and `millrace cancel` against the real server.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openRealService } from '../real-service.ts';

const task = { question: '6 * 7?', answer: '42' };
const idsIn = (out: string): string[] => JSON.parse(out).map((one: { id: string }) => one.id);

test('rollouts are listed newest first, filtered by state, group, scenario and batch', async () => {
  await using service = await openRealService();
  await service.client.submit(['a', 'b', 'c'].map((id) => ({ id, scenario: 'math', task, ...(id === 'b' ? { group: 'g' } : {}) })));
  await service.client.cancel('c');
  await service.client.batches.create({ id: 'step-1', scenario: 'math', group_size: 2, target: 1, tasks: [task] });
  const list = async (...more: string[]) => idsIn((await service.run(['ls', '--json', ...more])).out);
  assert.deepEqual((await list()).slice(-3), ['c', 'b', 'a']);
  assert.deepEqual(await list('--state', 'cancelled'), ['c']);
  assert.deepEqual(await list('--group', 'g'), ['b']);
  assert.deepEqual(await list('--scenario', 'shell'), []);
  assert.deepEqual((await list('--limit', '2', '--state', 'queued', '--group', 'g')).length, 1);
  for (const id of await list('--batch', 'step-1')) assert.match(id, /^step-1:/);
  const { out } = await service.run(['ls', '--state', 'cancelled']);
  assert.match(out, /^rollout +state +reward +scenario +attempt +took +age +group +failure\nc +cancelled +- +math +0 /);
  assert.deepEqual((await service.run(['ls', '--state', 'done'])).err, 'There is no such rollout.\n');
  assert.match((await service.run(['ls', '--state', 'ended'])).err, /--state ended is not one of queued, /);
});

test('filters look behind rollouts that do not match, and refuse what they cannot read', async () => {
  await using service = await openRealService();
  await service.client.submit(['a', 'b', 'c'].map((id) => ({ id, scenario: 'math', task, metadata: { note: `Note of ${id}` } })));
  await service.client.cancel('b');
  const list = async (...more: string[]) => idsIn((await service.run(['ls', '--json', '--limit', '1', ...more])).out);
  assert.deepEqual(await list('--text', 'note of A'), ['a']);
  assert.deepEqual(await list('--reward', 'none', '--text', '"queued"'), ['c']);
  assert.deepEqual(await list('--reward', '0..1'), []);
  assert.deepEqual(await list('--stop-reason', 'completed'), []);
  for (const bad of ['..', 'x', '1..x', '0.5-1'])
    assert.match((await service.run(['ls', `--reward=${bad}`])).err, /is not a range such as/);
  assert.match((await service.run(['ls', '--blame', 'nobody'])).err, /--blame nobody is not one of caller, /);
});

test('logs prints the events of the service or of one rollout, and watch --json its status', async () => {
  await using service = await openRealService();
  await service.client.submit(['r-a1', 'r-b1'].map((id) => ({ id, scenario: 'math', task })));
  await service.client.cancel('r-a1');
  assert.match((await service.run(['logs'])).out, /^\d{4}-\S+Z {2}rollout-queue +r-a1[\s\S]*Z {2}rollout-end +r-a1 {2}cancelled/m);
  const lines = (await service.run(['logs', 'r-b', '--json'])).out.trim().split('\n');
  assert.deepEqual([...new Set(lines.map((line) => JSON.parse(line).rollout_id))], ['r-b1']);
  assert.match((await service.run(['logs', 'nope'])).err, /no rollout is called nope/);
  const { out } = await service.run(['watch', '--once', '--json']);
  assert.deepEqual([JSON.parse(out).rollouts.queued, out.trim().includes('\n')], [1, false]);
});

test('rollouts are cancelled by id, and each says what became of it', async () => {
  await using service = await openRealService();
  await service.client.submit(['a', 'b'].map((id) => ({ id, scenario: 'math', task })));
  await service.client.cancel('b');
  assert.equal((await service.run(['cancel', 'a', 'b'])).out, 'a is cancelled\nb had already ended\n');
});

test('cancel takes the start of an id, and an id that no rollout has cancels nothing', async () => {
  await using service = await openRealService();
  await service.client.submit(['r-aaa1', 'r-abb1', 'r-abb2'].map((id) => ({ id, scenario: 'math', task })));
  const unknown = await service.run(['cancel', 'r-aaa', 'nope']);
  assert.deepEqual([unknown.code, unknown.out], [1, '']);
  assert.match(unknown.err, /no rollout is called nope or begins with it on this service; to list them: millrace ls\n/);
  const several = await service.run(['cancel', 'r-ab']);
  assert.deepEqual([several.code, several.out], [2, '']);
  assert.match(several.err, /r-ab is the start of several rollouts: r-abb1, r-abb2\n/);
  for (const id of ['r-aaa1', 'r-abb1', 'r-abb2']) assert.equal((await service.client.get(id)).state, 'queued');
  assert.equal((await service.run(['cancel', 'r-aa', 'r-aaa1', 'r-abb2'])).out, 'r-aaa1 is cancelled\nr-abb2 is cancelled\n');
  const [later] = await service.client.submit([{ id: 'nope', scenario: 'math', task }]);
  assert.equal(later?.state, 'queued', 'a later submission with that id is not born cancelled');
});

test('everything that is queued is cancelled only after a yes', async () => {
  await using service = await openRealService();
  await service.client.submit(['a', 'b'].map((id) => ({ id, scenario: 'math', task })));
  const refused = await service.run(['cancel', '--all-queued'], { stdin: '' });
  assert.equal(refused.code, 2);
  assert.match(refused.err, /Cancel all 2 queued rollouts\? Add --yes/);
  assert.equal((await service.client.get('a')).state, 'queued');
  assert.equal((await service.run(['cancel', '--all-queued', '--yes'])).out, '2 rollouts are cancelled\n');
  assert.equal((await service.run(['cancel', '--all-queued'], { stdin: '' })).err, 'Nothing is queued.\n');
});

test('a batch is cancelled with its rollouts, and one that is over says so', async () => {
  await using service = await openRealService();
  await service.client.batches.create({ id: 'step-1', scenario: 'math', group_size: 2, target: 1, tasks: [task] });
  assert.equal((await service.run(['cancel', '--batch', 'step-1', '--yes'])).out, 'batch step-1 is cancelled\n');
  const again = await service.run(['cancel', '--batch', 'step-1', '--yes']);
  assert.deepEqual([again.code, again.err], [1, 'batch step-1 is already over: cancelled\n']);
  const unknown = await service.run(['ls', '--batch', 'step-2']);
  assert.deepEqual([unknown.code, unknown.out], [1, '']);
  assert.match(unknown.err, /no batch is called step-2 or begins with it/);
});

test('a rollout without a reward is retried by the start of its id, from the file of its submission, or with all that failed', async () => {
  await using service = await openRealService();
  await service.client.submit(['r-1', 's-2'].map((id) => ({ id, scenario: 'math', task })));
  const running = await service.run(['retry', 'r-']);
  assert.deepEqual([running.code, running.out], [1, '']);
  assert.match(running.err, /rollout r-1 has not ended: it is in queued/);
  await service.client.cancel('r-1');
  assert.equal((await service.run(['retry', 'r-1'])).out, 'r-1 is retried as r-1.1\n');
  await service.client.cancel('r-1.1');
  const file = [{ id: 'r-1' }, { id: 's-2' }].map((one) => JSON.stringify({ ...one, scenario: 'math', task })).join('\n');
  const submitted = await service.run(['submit', '--retry-failed', '--detach'], { stdin: file });
  assert.deepEqual(submitted.out.match(/"id":"[^"]+"/g), ['"id":"r-1.2"', '"id":"s-2"'], submitted.err);
  assert.equal((await service.run(['retry', '--all-failed', '--yes'])).err, 'No rollout has failed.\n');
  assert.equal((await service.run(['retry'])).code, 2);
});

test('cancel needs exactly one way to choose', async () => {
  await using service = await openRealService();
  for (const argv of [['cancel'], ['cancel', 'a', '--all-queued'], ['cancel', '--batch', 'b', '--all-queued']])
    assert.equal((await service.run(argv)).code, 2);
});
