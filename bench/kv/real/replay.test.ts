// The simulated engine finds as much in its cache as a real vLLM did for the same requests; compare.ts made the file.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { makeRounds, replaySimulated, sceneAt, smallCache } from './replay.ts';

interface ReplayLine {
  readonly pressure: number;
  readonly agents: number;
  readonly together: number;
  readonly requests: number;
  readonly seed: number;
  readonly hits: { readonly real: number };
}

test('the hit rates of the simulation are within 10 % of those of a real vLLM', () => {
  const text = readFileSync(join(import.meta.dirname, 'cpu.jsonl'), 'utf8');
  const lines = text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as ReplayLine);
  assert.ok(lines.length > 0);
  for (const { pressure, agents, together, requests, seed, hits } of lines) {
    const scene = sceneAt(pressure, { together, rounds: requests / together });
    assert.equal(scene.agents, agents);
    const { cachedTokens, promptTokens } = replaySimulated(makeRounds(scene, seed), smallCache);
    const found = cachedTokens / promptTokens;
    assert.ok(Math.abs(found - hits.real) <= 0.1 * hits.real, `${pressure} × the cache: ${found} instead of ${hits.real}`);
  }
});
