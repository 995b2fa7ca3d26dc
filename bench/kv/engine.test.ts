// The simulated engine has the mechanism of the real one, and its speed.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type EngineShape, SimEngine } from './engine.ts';
import { fixedCap, sticky } from './policies.ts';
import { simulate } from './simulation.ts';
import { h200, measured } from './workloads.ts';

const shape: EngineShape = { ...h200, blocks: 10, stepTokens: 64, maxRunning: 4 };

interface Ended {
  readonly id: number;
  readonly cachedTokens: number;
  readonly preemptions: number;
}

function openEngine(changes: Partial<EngineShape> = {}) {
  const engine = new SimEngine({ ...shape, ...changes });
  const ended: Ended[] = [];
  return {
    engine,
    ended,
    submit: (id: number, promptTokens: number, outputTokens = 1) =>
      engine.submit({
        promptTokens,
        outputTokens,
        blockKey: (index) => id * 1000 + index,
        onFirstToken: () => {},
        onEnd: ({ cachedTokens, preemptions }) => ended.push({ id, cachedTokens, preemptions }),
      }),
    run: () => {
      let steps = 0;
      for (; !engine.isIdle; steps += 1) {
        engine.begin();
        engine.finish(steps);
      }
      return steps;
    },
  };
}

test('a prompt longer than a step is computed in chunks, and its last token gives the first sampled one', () => {
  const { submit, run, engine } = openEngine();
  submit(1, 150, 3);
  assert.equal(run(), 3 + 2);
  assert.deepEqual([engine.counts.computedTokens, engine.counts.sampledTokens], [152, 3]);
});

test('the same prompt is found again in full blocks, but for the block of its last token', () => {
  const { submit, run, ended } = openEngine();
  for (const tokens of [64, 64, 65]) {
    submit(1, tokens);
    run();
  }
  assert.deepEqual(
    ended.map(({ cachedTokens }) => cachedTokens),
    [0, 48, 64],
  );
});

test('the context that was used longest ago is evicted first, from its end', () => {
  const { submit, run, ended } = openEngine();
  for (const id of [1, 2, 3]) {
    submit(id, 64);
    run();
  }
  submit(1, 65);
  run();
  assert.deepEqual(ended.at(-1), { id: 1, cachedTokens: 32, preemptions: 0 });
});

test('a request that does not fit waits, and so do those after it', () => {
  const { engine, submit } = openEngine();
  submit(1, 100, 5);
  submit(2, 100, 5);
  submit(3, 16, 5);
  engine.begin();
  assert.deepEqual([engine.running, engine.waiting], [1, 2]);
});

test('when blocks run out, the request that came last is preempted and computed again', () => {
  const { submit, run, ended, engine } = openEngine();
  submit(1, 60, 40);
  submit(2, 60, 40);
  run();
  assert.deepEqual(
    ended.map(({ id, preemptions }) => [id, preemptions > 0]),
    [
      [1, false],
      [2, true],
    ],
  );
  assert.equal(engine.usage, 0);
});

test('a flushed engine has nothing cached', () => {
  const { submit, run, ended, engine } = openEngine();
  submit(1, 64);
  run();
  engine.flush();
  submit(1, 64);
  run();
  assert.equal(ended.at(-1)?.cachedTokens, 0);
});

test('the simulation is within 10 % of the tokens per second that were measured on an H200, and within 0.05 of the hits', () => {
  const seeds = [1, 2, 3, 4, 5];
  for (const { workload, cap, seconds, tokensPerS, hits } of measured) {
    const runs = seeds.map((seed) => simulate({ shape: h200, workload, policy: cap ? fixedCap(cap) : sticky, seed, seconds }));
    const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
    const what = `${workload.agents} agents from ${workload.startTokens} tokens, cap ${cap ?? 'none'}`;
    const speed = mean(runs.map((run) => run.tokensPerS));
    const found = mean(runs.map((run) => run.lookupHitRate));
    assert.ok(Math.abs(speed / tokensPerS - 1) < 0.1, `${what}: ${speed} instead of ${tokensPerS} tokens/s`);
    assert.ok(Math.abs(found - hits) < 0.05, `${what}: ${found} instead of ${hits} hits`);
  }
});
