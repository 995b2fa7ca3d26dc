// Two servers and a lone worker, each its own process, on one store in PostgreSQL. A worker is killed, PostgreSQL crashes, and one server
// is killed with its workers in the middle of a batch; a client and a webhook get every group once.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { openFakeBackend, PostgresServer, qwen3Folder, readPastEvents, scriptedPolicy, skipPostgres, TestService } from '@millrace/testkit';

const main = fileURLToPath(new URL('../../packages/cli/src/main.ts', import.meta.url));
const tokenizer = qwen3Folder();
const policy = scriptedPolicy([{ match: /1 \+ 1/, turns: ['It is \\boxed{2}.'] }]);
const target = 12;

/** The ids of the deliveries to a webhook, in order. */
async function openReceiver(): Promise<{ readonly url: string; readonly seen: string[] } & Disposable> {
  const seen: string[] = [];
  const server = createServer((request, response) => {
    request.resume().on('end', () => {
      seen.push(String(request.headers['webhook-id']));
      response.writeHead(204).end();
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const dispose = () => {
    server.close();
    server.closeAllConnections();
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, seen, [Symbol.dispose]: dispose };
}

test('two servers share a store in PostgreSQL: a killed worker, a crashed database and a killed server lose no group and double none', {
  timeout: 240_000,
  skip: skipPostgres,
}, async () => {
  await using database = await PostgresServer.open({ isDurable: true });
  await using backend = await openFakeBackend({ policy, latencyMs: () => 150 });
  const pipeline = { leaseMs: 3_000, retryDelayMs: 50, handBackMs: 2_000, initSlots: 4, runSlots: 8 };
  const settings = { tokenizer, pipeline, store: { address: database.address } };
  await using first = await TestService.open({ ...settings, workers: 2 });
  await using second = await TestService.open({ ...settings, workers: 0 });
  const labelled = { scenario: 'math', task: { question: '1 + 1 = ?', answer: '2' }, requires: { gpu: 'a100' } };
  const [labelledId] = (await second.client.submit([labelled])).map(({ id }) => id);
  assert.match((await second.client.get(labelledId ?? '')).waiting ?? '', /^no live machine has gpu=a100 \(/);
  const options = ['--store', database.address, '--tokenizer', tokenizer, '--data', second.folder, '--label', 'gpu=a100'];
  const lone = spawn(process.execPath, [main, 'worker', ...options], { stdio: 'ignore' });
  const gone = once(lone, 'exit');
  await first.client.backends.join({ id: 'fake', url: backend.url });
  const tasks = Array.from({ length: 40 }, () => ({ question: '1 + 1 = ?', answer: '2' }));
  using receiver = await openReceiver();
  const webhook = { url: receiver.url };
  const batch = { id: 'shared', scenario: 'math', tasks, group_size: 4, target, webhook, informative: { rule: 'any' as const } };
  await second.client.batches.create(batch);
  const seen: number[] = [];
  for await (const { group } of second.client.batches.groups('shared')) {
    seen.push(group.seq);
    assert.deepEqual(
      group.rollouts.map(({ reward }) => reward),
      [1, 1, 1, 1],
    );
    if (seen.length === 2) {
      const [victim] = (await first.client.status()).workers.filter(({ alive, pid }) => alive && pid !== lone.pid);
      if (victim) process.kill(victim.pid, 'SIGKILL');
    }
    if (seen.length === 4) {
      await database.stop('SIGQUIT');
      await database.start();
    }
    if (seen.length === 6) await first.kill();
  }
  assert.deepEqual(
    seen,
    Array.from({ length: target }, (_, index) => index + 1),
  );
  const { state } = await second.client.batches.get('shared');
  assert.equal(state, 'met');
  const ends = new Map<string, number>();
  for (const { rollout_id = '' } of await readPastEvents(second.client, 'rollout-end'))
    ends.set(rollout_id, (ends.get(rollout_id) ?? 0) + 1);
  assert.deepEqual(
    [...ends].filter(([, count]) => count !== 1),
    [],
  );
  const wanted = seen.map((seq) => `shared/${seq}`);
  while (new Set(receiver.seen).size < target) await wait(50);
  // The delivery that the killed server was making may be repeated.
  assert.deepEqual([...new Set(receiver.seen)], wanted);
  assert.ok(receiver.seen.length <= target + 1, receiver.seen.join());
  const { state: ended, worker } = await second.client.wait(labelledId ?? '');
  assert.deepEqual([ended, worker], ['done', null], 'the worker with the label took it');
  while (!/^millrace_server_leads 1$/m.test(await (await fetch(`${second.url}/metrics`)).text())) await wait(100);
  lone.kill('SIGTERM');
  await gone;
});
