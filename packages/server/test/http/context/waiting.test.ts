// Rollouts and evaluations that no live machine can take: their views and the hints of the status say what is missing.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { workerId } from '@millrace/protocol';
import { makeReport } from '@millrace/testkit';
import { keep } from '../batch-floor.ts';
import { errorOf, type Floor, openFloor, task } from '../floor.ts';

async function addMachine({ store }: Floor, name: string, labels: Record<string, string>): Promise<void> {
  const id = workerId.parse(`w-${name}`);
  await store.registerWorker({ id, host: name, pid: 1 }, { leaseMs: 60_000 });
  const machine = { id: name, name, labels, cpus: 1, memory_bytes: 1, scenarios: ['sums'] };
  await store.renew(id, { leaseMs: 60_000, report: { ...makeReport(0), machine } });
}

test('a rollout that requires a label which no live machine has says so, alone, in a list and as a hint', async () => {
  await using floor = await openFloor();
  await addMachine(floor, 'node-1', { gpu: 't4' });
  const [picky, plain] = [await floor.submit({ requires: { gpu: 'a100' } }), await floor.submit()];
  const missing = 'no live machine has gpu=a100 (live: node-1 gpu=t4)';
  assert.equal((await floor.call('GET', `/v1/rollouts/${picky}`)).body.waiting, missing);
  assert.equal((await floor.call('GET', `/v1/rollouts/${plain}`)).body.waiting, undefined);
  const { rollouts } = (await floor.call('GET', '/v1/rollouts')).body;
  assert.deepEqual(
    rollouts.map(({ waiting }: { waiting?: string }) => waiting),
    [missing, undefined],
  );
  assert.ok((await floor.call('GET', '/v1/status')).body.hints.includes(`1 rollout waits: ${missing}`));
});

test('a rollout that a live machine can take waits for nothing but its turn', async () => {
  await using floor = await openFloor();
  await addMachine(floor, 'node-1', {});
  await addMachine(floor, 'node-2', { gpu: 'a100', disk: 'fast' });
  const id = await floor.submit({ requires: { gpu: 'a100' } });
  assert.equal((await floor.call('GET', `/v1/rollouts/${id}`)).body.waiting, undefined);
});

test('an evaluation passes on what it requires, and says why its samples wait until a machine has it', async () => {
  await using floor = await openFloor();
  await addMachine(floor, 'node-1', { gpu: 't4' });
  const request = { id: 'e', scenario: 'sums', tasks: [task], requires: { gpu: 'a100' } };
  const missing = 'no live machine has gpu=a100 (live: node-1 gpu=t4)';
  assert.equal((await floor.call('POST', '/v1/evaluations', request)).body.waiting, missing);
  await floor.call('POST', '/v1/evaluations', { ...request, id: 'plain', requires: undefined });
  await keep(floor);
  assert.equal((await floor.call('GET', '/v1/rollouts/e:0:0')).body.waiting, missing);
  const { evaluations } = (await floor.call('GET', '/v1/evaluations')).body;
  assert.deepEqual(
    evaluations.map(({ waiting }: { waiting?: string }) => waiting),
    [missing, undefined],
  );
  const [sample] = await floor.store.claim(workerId.parse('w-node-1'), 9, { gpu: 'a100' });
  assert.deepEqual(sample?.submission.requires, { gpu: 'a100' });
  assert.equal((await floor.call('POST', '/v1/evaluations', { ...request, requires: { gpu: 't4' } })).status, 409, 'it is other content');
  assert.equal((await floor.call('DELETE', '/v1/evaluations/e')).body.waiting, undefined, 'it has ended');
});

test('a requirement that cannot be a label is refused, with the field named', async () => {
  await using floor = await openFloor();
  const evaluation = await floor.call('POST', '/v1/evaluations', { scenario: 'sums', tasks: [task], requires: { gpu: 1 } });
  assert.deepEqual([evaluation.status, /^requires\.gpu/.test(errorOf(evaluation).message)], [400, true]);
  const refused = await floor.call('POST', '/v1/rollouts', { rollouts: [{ scenario: 'sums', task, requires: { gpu: 1 } }] });
  assert.deepEqual([refused.status, /rollouts\[0\]\.requires\.gpu/.test(errorOf(refused).message)], [400, true]);
});
