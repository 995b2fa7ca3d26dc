// Batches as a trainer sees them: real processes, real rollouts, and a server that is killed half-way.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { openFakeBackend, qwen3Folder, TestService } from '@millrace/testkit';

const tokenizer = qwen3Folder();
const tasks = Array.from({ length: 200 }, (_, index) => ({ question: `${index} ${index % 2 === 0 ? 'plain' : 'hard'}`, answer: '2' }));

/** Plain questions are always solved; every second answer to a hard one is right. */
function openBackend() {
  let answers = 0;
  return openFakeBackend({
    policy: (input) => ({ text: `\\boxed{${/plain/.test(input.opening()) || answers++ % 2 === 0 ? 2 : 3}}` }),
    latencyMs: 20,
    keep: 0,
  });
}

describe('batches of the whole service', () => {
  test('a server killed during a batch continues it: exactly the target, each group once, the surplus stopped', async () => {
    await using backend = await openBackend();
    await using service = await TestService.open({ workers: 1, tokenizer, pipeline: { runSlots: 16, leaseMs: 2000 } });
    const { batches, backends } = service.client;
    await backends.join({ url: backend.url });
    await batches.create({ id: 'b', scenario: 'math', group_size: 4, target: 12, tasks });
    const seen: number[] = [];
    for await (const { group, trajectories } of batches.groups('b', { consumer: 'trainer' })) {
      seen.push(group.seq);
      assert.equal(new Set(group.rewards).size, 2);
      assert.deepEqual(
        trajectories.map(({ rolloutId }) => rolloutId),
        group.rollouts.map(({ id }) => id),
      );
      if (group.seq !== 3) continue;
      await service.kill();
      await service.start();
    }
    assert.deepEqual(
      seen,
      Array.from({ length: 12 }, (_, index) => index + 1),
    );
    const view = await batches.wait('b');
    assert.deepEqual([view.state, view.groups.delivered, view.groups.open], ['met', 12, 0]);
    assert.deepEqual(await Array.fromAsync(batches.groups('b', { consumer: 'trainer' })), []);
    const live = (await Array.fromAsync(service.client.list())).filter(({ state }) => !['done', 'cancelled', 'failed'].includes(state));
    // One that was about to end may be done before its cancel arrives.
    for (const { id } of live) assert.match((await service.client.wait(id)).state, /^(cancelled|done)$/);
  });

  test('when the target is met, the surplus ends within a second', async () => {
    let answers = 0;
    let isSlow = false;
    await using backend = await openFakeBackend({
      policy: (input) => {
        isSlow = /slow/.test(input.opening());
        return { text: `\\boxed{${answers++ % 2 === 0 ? 2 : 3}}` };
      },
      latencyMs: () => (isSlow ? 60_000 : 1500),
      keep: 0,
    });
    await using service = await TestService.open({ workers: 1, tokenizer, pipeline: { runSlots: 64 } });
    const { batches, backends } = service.client;
    await backends.join({ url: backend.url });
    const mixed = Array.from({ length: 20 }, (_, index) => ({
      question: index < 6 ? `quick ${index}` : `slow ${index}`,
      answer: '2',
    }));
    await batches.create({ id: 'b', scenario: 'math', group_size: 4, target: 6, tasks: mixed });
    const { state, ended_at } = await batches.wait('b');
    assert.equal(state, 'met');
    const running = (await Array.fromAsync(service.client.list())).filter(({ attempt, group }) => attempt > 0 && group !== null);
    const ends = await Promise.all(running.map(({ id }) => service.client.wait(id)));
    const stopped = ends.filter((rollout) => rollout.state === 'cancelled');
    assert.ok(stopped.length > 0, 'some ran when the target was met');
    for (const rollout of stopped) assert.ok(Date.parse(rollout.ended_at ?? '') - Date.parse(ended_at ?? '') < 1000, rollout.id);
  });

  test('the next batch of a series takes over the surplus of the previous one', async () => {
    await using backend = await openBackend();
    await using service = await TestService.open({ workers: 1, tokenizer, pipeline: { runSlots: 64 } });
    const { batches, backends } = service.client;
    await backends.join({ url: backend.url });
    const plan = { scenario: 'math', group_size: 4, target: 4, series: 's', surplus: 'keep' } as const;
    await batches.create({ ...plan, id: 'first', tasks: tasks.slice(0, 100) });
    const first = await batches.wait('first');
    await batches.create({ ...plan, id: 'second', tasks: tasks.slice(100) });
    const second = await batches.wait('second');
    assert.deepEqual([first.state, second.state], ['met', 'met']);
    assert.equal(second.carried >= Math.min(1, first.groups.surplus ?? 0), true);
    assert.equal((await batches.get('first')).groups.surplus, Math.max(0, (first.groups.surplus ?? 0) - second.carried));
  });
});
