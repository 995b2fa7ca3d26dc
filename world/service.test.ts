// The whole service on a real vLLM with a real model: groups, a shell, pauses, a cancel and new weights. Every recorded logprob is
// recomputed by the engine itself from the recorded ids.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import type { PauseMode, RolloutView } from '@millrace/protocol';
import { makeTempFolder, processesInSandboxesOf, type TempFolder, TestService } from '@millrace/testkit';
import type { Engine } from './engines/engine-process.ts';
import { openSharedVllm } from './engines/shared-engines.ts';
import { skipWithoutVllm } from './engines/vllm.ts';
import { modelFolder, modelName } from './engines/world-cache.ts';
import { countRunning, countSampled } from './suite/ask.ts';
import { isDone, largestOf, makeMath, type ScoredSegment, scoreTrajectory } from './suite/real-service.ts';
import { loadWeights, writeScaledModel } from './suite/weights.ts';

/** In float32 the same ids give the same logprobs up to the order of additions. */
const noise = 1e-3;

describe('the service on a real vLLM', { skip: skipWithoutVllm(), timeout: 1_800_000 }, () => {
  let engine: Engine;
  let service: TestService;
  let folder: TempFolder;
  before(async () => {
    engine = await openSharedVllm();
    folder = await makeTempFolder('world');
    service = await TestService.open({
      workers: 1,
      tokenizer: modelFolder(),
      pipeline: { runSlots: 16 },
      sandbox: { warm: { sandboxes: 0 } },
    });
    await service.client.backends.join({ id: 'real', url: engine.url, dialect: 'vllm', model: modelName, logprobs_mode: 'processed' });
  });
  after(async () => {
    await service?.[Symbol.asyncDispose]();
    await engine?.[Symbol.asyncDispose]();
    await folder?.[Symbol.asyncDispose]();
  });

  async function score(views: readonly RolloutView[], isWanted?: (version: number) => boolean): Promise<ScoredSegment[]> {
    const all = [];
    for (const { id } of views) all.push(...(await scoreTrajectory(engine, await service.client.trajectory(id), isWanted)));
    return all;
  }

  /** Until this many tokens were sampled since now. */
  async function waitForTokens(tokens: number): Promise<void> {
    const [before, deadline] = [await countSampled(engine), performance.now() + 120_000];
    while ((await countSampled(engine)) < before + tokens) {
      if (performance.now() > deadline) throw new Error(`no ${tokens} tokens were sampled in 120 s`);
      await pause(20);
    }
  }

  /** A client that goes away is noticed by the engine a moment later. */
  async function waitUntilEmpty(): Promise<number> {
    const startedAt = performance.now();
    while ((await countRunning(engine, 'vllm')) > 0) {
      if (performance.now() > startedAt + 20_000) throw new Error('the engine still samples after 20 s');
      await pause(20);
    }
    return performance.now() - startedAt;
  }

  async function run(submissions: Parameters<typeof service.client.submit>[0]): Promise<RolloutView[]> {
    const { last_event_id: after } = await service.client.status();
    const ids = (await service.client.submit(submissions)).map(({ id }) => id);
    return await Array.fromAsync(service.client.results(ids, { after }));
  }

  test('math rollouts in groups are done, and every logprob is the one that the engine gives the same ids', async (context) => {
    const groups = [0, 1, 2].flatMap((g) => [0, 1, 2, 3].map((i) => makeMath(`math-${g}-${i}`, { group: `g-${g}`, a: g + 1, b: 2 })));
    const views = await run(groups);
    assert.deepEqual(
      views.filter((view) => !isDone(view)).map(({ id, failure }) => `${id}: ${failure?.message}`),
      [],
    );
    const { tokens, largest, mean } = largestOf(await score(views));
    context.diagnostic(`${tokens} sampled tokens; against the engine's own scores: mean difference ${mean}, largest ${largest}`);
    assert.ok(tokens >= views.length && largest < noise, `${largest} over ${tokens} tokens`);
    const texts = new Set(await Promise.all(views.map(async ({ id }) => (await service.client.trajectory(id)).segments.at(-1)?.text)));
    assert.ok(texts.size > 1, 'siblings are sampled, not copied');
  });

  test('a shell rollout runs in a sandbox, is scored by its check, and leaves nothing behind', async () => {
    const task = { instruction: 'Say hello.', setup: 'echo 1 > number', check: 'grep -qx 1 number' };
    const limits = { max_turns: 2, max_context_tokens: 1024 };
    const views = await run([0, 1].map((i) => ({ id: `shell-${i}`, scenario: 'shell', task, limits, sampling: { max_tokens: 16 } })));
    assert.deepEqual(
      views.map(({ state, reward }) => [state, reward]),
      [
        ['done', 1],
        ['done', 1],
      ],
    );
    assert.ok(largestOf(await score(views)).largest < noise);
    assert.deepEqual(await processesInSandboxesOf(service.runDir), []);
  });

  for (const mode of ['wait', 'abort'] as const satisfies readonly PauseMode[]) {
    test(`a pause (${mode}) empties the engine, and the rollouts end exactly after the resume`, async (context) => {
      const { client } = service;
      const ids = Array.from({ length: 4 }, (_, i) => `pause-${mode}-${i}`);
      await client.submit(ids.map((id, i) => makeMath(id, { a: i + 3, sampling: { max_tokens: 40 } })));
      await waitForTokens(12);
      await client.policy.pause({ mode });
      try {
        context.diagnostic(`the engine was empty ${(await waitUntilEmpty()).toFixed(0)} ms after the pause`);
      } finally {
        await client.policy.resume();
      }
      const views = await Array.fromAsync(client.results(ids));
      assert.ok(views.every(isDone));
      assert.ok(largestOf(await score(views)).largest < noise);
    });
  }

  test('a cancelled rollout ends at once, and the engine stops sampling it', async () => {
    const { client } = service;
    await client.submit([makeMath('cancel', { sampling: { max_tokens: 900, temperature: 2 } })]);
    await waitForTokens(12);
    await client.cancel('cancel');
    assert.equal((await client.wait('cancel')).state, 'cancelled');
    await waitUntilEmpty();
  });

  test('new weights between two pauses: each token was sampled by the weights that its segment names', async (context) => {
    const { client } = service;
    const other = writeScaledModel(join(folder.path, 'scaled'), 0.7);
    const before = (await client.policy.get()).policy_version;
    const ids = Array.from({ length: 6 }, (_, i) => `weights-${i}`);
    await client.submit(ids.map((id, i) => makeMath(id, { a: i, sampling: { max_tokens: 40 } })));
    await waitForTokens(12);
    await client.policy.pause({ mode: 'abort' });
    try {
      await loadWeights(engine, other);
      await client.policy.resume({ policy_version: before + 1 });
      const views = await Array.fromAsync(client.results(ids));
      const fresh = await score(views, (version) => version === before + 1);
      await client.policy.pause();
      await loadWeights(engine, modelFolder());
      const old = await score(views, (version) => version === before);
      const crossed = await score(views, (version) => version === before + 1);
      await client.policy.resume({ policy_version: before + 2 });
      const [was, is, wrong] = [old, fresh, crossed].map(largestOf);
      context.diagnostic(`under the old weights ${was?.tokens} tokens, largest difference ${was?.largest}`);
      context.diagnostic(
        `under the new weights ${is?.tokens} tokens, largest difference ${is?.largest}; with the old ones ${wrong?.largest}`,
      );
      assert.ok(views.every(isDone));
      assert.ok((is?.tokens ?? 0) > 0 && (is?.largest ?? 1) < noise && (was?.largest ?? 0) < noise);
      assert.ok((wrong?.largest ?? 0) > 0.05, 'the weights really differ');
    } finally {
      await loadWeights(engine, modelFolder());
    }
  });
});

test('a vLLM that is asked over its chat route renders the prompts of the service, and its tokens are exact', {
  skip: skipWithoutVllm(),
  timeout: 900_000,
}, async () => {
  await using engine = await openSharedVllm();
  await using service = await TestService.open({ workers: 1, tokenizer: modelFolder(), sandbox: { warm: { sandboxes: 0 } } });
  const { client } = service;
  await client.backends.join({ id: 'chat', url: engine.url, dialect: 'chat', model: modelName, logprobs_mode: 'processed' });
  const { last_event_id: after } = await client.status();
  const ids = (await client.submit([0, 1, 2, 3].map((i) => makeMath(`chat-${i}`, { a: i + 1, b: 2 })))).map(({ id }) => id);
  const views = await Array.fromAsync(client.results(ids, { after }));
  assert.deepEqual(
    views.filter((view) => !isDone(view)).map(({ id, failure }) => `${id}: ${failure?.message}`),
    [],
  );
  const scored = [];
  for (const { id } of views) scored.push(...(await scoreTrajectory(engine, await client.trajectory(id))));
  const { tokens, largest } = largestOf(scored);
  assert.ok(tokens > 50 && largest < noise, `${tokens} tokens, largest difference ${largest}`);
});
