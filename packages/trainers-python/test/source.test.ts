// What all adapters sample through, against a real service with a fake LLM server: one Python program, and what it saw.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { openFakeBackend, openFakeTokens, qwen3Folder, TestService } from '@millrace/testkit';
import { z } from 'zod';

const report = z.object({
  refused: z.string(),
  evaluated: z.int(),
  any: z.int(),
  rewards: z.array(z.number()),
  copies: z.object({ ids: z.array(z.string()), owners: z.int() }),
  weights: z.record(z.string(), z.array(z.unknown())),
});

test('a source refuses raw logprobs, takes tasks with nulls, is copied, and keeps its pause', async () => {
  await using backend = await openFakeBackend({ policy: () => ({ text: '\\boxed{2}' }), tokens: await openFakeTokens() });
  await using service = await TestService.open({ workers: 1, tokenizer: qwen3Folder() });
  await service.client.backends.join({ url: backend.url });
  const found = report.parse(JSON.parse(await runPython(service.url)));
  assert.match(found.refused, /was sampled by .* with temperature 0\.5, and its logprobs are raw.*MILLRACE_LOGPROBS=any/);
  assert.deepEqual([found.evaluated, found.any, found.rewards], [1, 1, [1, 1]]);
  assert.deepEqual([new Set(found.copies.ids).size, found.copies.owners], [3, 2]);
  assert.deepEqual(found.weights, {
    stranger: ['conflict', true],
    during: [true, 'paused', 0, true],
    after: ['running', 1, 'step-1', null],
    failed: ['running', 1],
  });
});

async function runPython(url: string): Promise<string> {
  const sources = ['trainers-python/src', 'client-python/src'].map((path) => join(import.meta.dirname, '../..', path));
  const env = { ...process.env, PYTHONPATH: sources.join(':'), PYTHONDONTWRITEBYTECODE: '1', MILLRACE_URL: url };
  const child = spawn('python3', [join(import.meta.dirname, 'programs/source.py')], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  assert.equal(code, 0, stderr);
  return stdout;
}
