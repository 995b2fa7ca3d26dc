// Two servers and a lone worker, each its own process, on one store in PostgreSQL. A worker is killed and PostgreSQL crashes in the
// middle of a batch; a client gets every group once, from either server.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { openFakeBackend, PostgresServer, qwen3Folder, scriptedPolicy, skipPostgres, TestService } from '@millrace/testkit';

const main = fileURLToPath(new URL('../../packages/cli/src/main.ts', import.meta.url));
const tokenizer = qwen3Folder();
const policy = scriptedPolicy([{ match: /1 \+ 1/, turns: ['It is \\boxed{2}.'] }]);
const target = 12;

test('two servers share a store in PostgreSQL: a killed worker and a crashed database lose no group and double none', {
  timeout: 240_000,
  skip: skipPostgres,
}, async () => {
  await using database = await PostgresServer.open({ isDurable: true });
  await using backend = await openFakeBackend({ policy, latencyMs: () => 150 });
  const pipeline = { leaseMs: 3_000, retryDelayMs: 50, handBackMs: 2_000, initSlots: 4, runSlots: 8 };
  const settings = { tokenizer, pipeline, store: { address: database.address } };
  await using first = await TestService.open({ ...settings, workers: 2 });
  await using second = await TestService.open({ ...settings, workers: 0 });
  const lone = spawn(process.execPath, [main, 'worker', '--store', database.address, '--tokenizer', tokenizer, '--data', second.folder], {
    stdio: 'ignore',
  });
  const gone = once(lone, 'exit');
  await first.client.backends.join({ id: 'fake', url: backend.url });
  const tasks = Array.from({ length: 40 }, () => ({ question: '1 + 1 = ?', answer: '2' }));
  const batch = { id: 'shared', scenario: 'math', tasks, group_size: 4, target, informative: { rule: 'any' as const } };
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
  }
  assert.deepEqual(
    seen,
    Array.from({ length: target }, (_, index) => index + 1),
  );
  const { state } = await first.client.batches.get('shared');
  assert.equal(state, 'met');
  const ends = new Map<string, number>();
  const { last_event_id: last } = await first.client.status();
  for await (const event of first.client.events({ after: 0 })) {
    if (event.kind === 'rollout-end') ends.set(event.rollout_id ?? '', (ends.get(event.rollout_id ?? '') ?? 0) + 1);
    if (event.id >= last) break;
  }
  assert.deepEqual(
    [...ends].filter(([, count]) => count !== 1),
    [],
  );
  lone.kill('SIGTERM');
  await gone;
});
