// What an engine and its agents can do to the rule: it loses no more than they take, and no one waits longer than the bound.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { longestHoldMs } from '../../packages/worker/src/inference/cache/cache-rule.ts';
import { ours, sticky } from './policies.ts';
import { type KvRun, simulate } from './simulation.ts';
import { h200, longContexts, toolsOf } from './workloads.ts';

const scene: Omit<KvRun, 'policy'> = { shape: h200, workload: longContexts(48), seed: 1, seconds: 600 };

/** `least`: the tokens per second over those of sticky in the same scene. */
function compare(least: number, changes: Partial<typeof scene> = {}, policy: KvRun['policy'] = ours()): void {
  const mine = simulate({ ...scene, ...changes, policy });
  const base = simulate({ ...scene, ...changes, policy: sticky });
  assert.ok(mine.tokensPerS >= least * base.tokensPerS, `${mine.tokensPerS} instead of ${base.tokensPerS} tokens/s`);
  assert.ok(Math.max(...mine.holdS) <= longestHoldMs / 1000, `waited ${Math.max(...mine.holdS)} s`);
}

test('one huge context takes its share and no more', () => {
  compare(1.5, { workload: { ...scene.workload, unlike: (session) => (session === 7 ? { startTokens: 300_000 } : {}) } });
});

test('a thousand tiny contexts lose nothing', () => {
  const tiny = { ...scene.workload, agents: 1000, startTokens: 200, observedTokens: 50, outputTokens: 50, isSpread: false };
  compare(0.97, { workload: tiny, seconds: 60 });
});

test('tools that never return do not keep the cache', () => {
  compare(2, { workload: { ...scene.workload, unlike: (session) => (session % 8 === 0 ? { toolS: 1e9 } : {}) } });
});

test('an engine that restarts with an empty cache is used as before, after its contexts were computed once', () => {
  compare(2.5, { incident: { atS: 300, act: ({ engines: [engine] }) => engine?.flush() } });
});

test('an engine that reports four times what it has, or a quarter of it, is found out or used for that much', () => {
  compare(1.3, {}, ours({ reported: (tokens) => 4 * tokens }));
  compare(1, {}, ours({ reported: (tokens) => tokens / 4 }));
});

test('tools of a minute lose nothing, however many workers share the cache', () => {
  compare(0.95, { workload: longContexts(96, toolsOf(60)) }, ours({ workers: 32 }));
});

test('of rollouts that were submitted together, those that began first are not overtaken', () => {
  const { holdS } = simulate({ ...scene, seconds: 400, policy: ours({ isOneSubmission: true }) });
  const { holdS: inTurn } = simulate({ ...scene, seconds: 400, policy: ours() });
  assert.ok(Math.max(...holdS) <= 1.2 * Math.max(...inTurn), `waited ${Math.max(...holdS)} instead of ${Math.max(...inTurn)} s`);
});

test('more workers than contexts that fit keep most of it', () => {
  compare(2, { workload: longContexts(96) }, ours({ workers: 48 }));
});
