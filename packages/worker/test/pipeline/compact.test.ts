// A scenario that compacts a full context, through the whole pipeline: the rollout continues, and its trajectory has the branches.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Scenario } from '@millrace/scenarios';
import { z } from 'zod';
import { finish, WorkerBed } from './worker-bed.ts';

test('when the context is full, the scenario compacts it, and the branches are in the trajectory', async () => {
  const asked: number[] = [];
  const scenario: Scenario = {
    name: 'long',
    task: z.unknown(),
    init: async () => ({ messages: [{ role: 'user', content: 'begin' }], tools: ['finish'] }),
    async compact({ messages }) {
      asked.push(messages.length);
      return [{ role: 'user', content: 'go on' }];
    },
    evaluate: async () => ({ reward: 1 }),
  };
  // Words fill the first context; the rollout finishes in the second.
  const policy = ({ opening }: { opening: () => string }) => ({
    text: opening().includes('go on') ? finish('done') : 'on and on '.repeat(2000),
  });
  await using bed = await WorkerBed.open({ policy, scenarios: [scenario] });
  await bed.startWorker();
  const id = await bed.submit({ id: 'r1', scenario: 'long', task: {}, limits: { max_context_tokens: 1500 } });
  const record = await bed.ended(id);
  assert.equal(record.result?.stop_reason, 'tool_stopped');
  assert.deepEqual(asked, [2]);
  const trajectory = await bed.store.trajectory(id);
  assert.deepEqual(
    trajectory?.segments.map(({ kind, branch }) => [kind, branch]),
    [
      ['prompt', undefined],
      ['sampled', undefined],
      ['prompt', 1],
      ['sampled', 1],
    ],
  );
});

test('a text on which compacting breaks is the lowest reward, and compacting that always breaks is blamed on the task', async () => {
  const run = async (isBroken: (text: string) => boolean) => {
    const scenario: Scenario = {
      name: 'long',
      task: z.unknown(),
      init: async () => ({ messages: [{ role: 'user', content: 'begin' }], tools: ['finish'] }),
      async compact({ messages }) {
        if (isBroken(messages.at(-1)?.content ?? '')) throw new Error('invalid literal');
        return [{ role: 'user', content: 'go on' }];
      },
      lowestReward: () => -1,
      evaluate: async () => ({ reward: 1 }),
    };
    await using bed = await WorkerBed.open({ policy: () => ({ text: 'on² and on '.repeat(2000) }), scenarios: [scenario] });
    await bed.startWorker();
    const limits = { max_context_tokens: 1500, max_retries: 0 };
    const { result, failure } = await bed.ended(await bed.submit({ id: 'r1', scenario: 'long', task: {}, limits }));
    return [result?.reward, failure?.code];
  };
  assert.deepEqual(await run((text) => text.includes('²')), [-1, 'policy-failed']);
  assert.deepEqual(await run(() => true), [null, 'run-failed']);
});
