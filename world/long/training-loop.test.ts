// examples/train-gpu with `--cpu` on a real vLLM. The log-probabilities that the trainer recomputes are compared with the recorded ones, so new
// weights must have reached vLLM whole.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { chooseFreePort } from '@millrace/base/free-port';
import { makeTempFolder } from '@millrace/testkit';
import { z } from 'zod';
import { openSharedVllm } from '../engines/shared-engines.ts';
import { skipWithoutVllm } from '../engines/vllm.ts';
import { modelFolder, vllmPython } from '../engines/world-cache.ts';
import { loadWeights } from '../suite/weights.ts';

const program = join(import.meta.dirname, '../../examples/train-gpu/train.py');

/** In float32, where the engine and the trainer add in another order. */
const mostMismatch = 1e-3;

const line = z.object({
  event: z.string(),
  reward: z.number().nullish(),
  mismatch_tokens: z.number().optional(),
  mismatch_max: z.number().nullish(),
});

test('two steps of training on a CPU: what the trainer recomputes is what vLLM recorded', {
  skip: skipWithoutVllm(),
  timeout: 900_000,
}, async () => {
  await using folder = await makeTempFolder('training');
  await using engine = await openSharedVllm();
  const given = ['--cpu', '--model', modelFolder(), '--engine', engine.url, '--out', folder.path, '--groups', '4'];
  const port = await chooseFreePort('127.0.0.1');
  try {
    await promisify(execFile)(vllmPython(), [program, ...given, '--port', `${port}`], { timeout: 600_000 });
  } finally {
    await loadWeights(engine, modelFolder()); // the engine is shared
  }
  const log = readFileSync(join(folder.path, 'steps.jsonl'), 'utf8');
  const lines = log
    .trim()
    .split('\n')
    .map((text) => line.parse(JSON.parse(text)));
  assert.equal(lines.filter(({ event }) => event === 'held-out').length, 2);
  const steps = lines.filter(({ event }) => event === 'step');
  assert.equal(steps.length, 2);
  for (const { reward } of steps) assert.ok(reward !== null && reward !== undefined && reward >= 0 && reward <= 1);
  const compared = steps.filter(({ mismatch_tokens = 0 }) => mismatch_tokens > 0);
  assert.ok(compared.length > 0, `no step trained on tokens of its own weights: ${JSON.stringify(steps)}`);
  for (const { mismatch_max } of compared) assert.ok((mismatch_max ?? 1) < mostMismatch, `${mismatch_max}`);
});
