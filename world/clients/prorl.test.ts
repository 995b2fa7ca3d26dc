// ProRL Agent's DAPO flow with real aiohttp from PyPI, against a whole service whose LLM servers speak as its trainers' own do.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { openFakeBackend, type Policy, qwen3Folder, renderCall, TestService } from '@millrace/testkit';
import { openClientPython } from '../engines/client-python.ts';

/** Of each three prompts one is always solved, one never, and one by half of the siblings. */
const policy: Policy = ({ turn, sessionId = '' }) => {
  const [, prompt = '0', trajectory = '0'] = /^p(\d+)_(\d+)_/.exec(sessionId) ?? [];
  if (turn === 0) return { text: renderCall('think', { thought: `prompt ${prompt}` }) };
  const kind = Number(prompt) % 3;
  const isRight = kind === 0 || (kind === 1 && Number(trajectory) % 2 === 0);
  return { text: renderCall('finish', { message: `\\boxed{${isRight ? Number(prompt) + 1 : -1}}` }) };
};

test('three batches of the DAPO flow with real aiohttp leave 0 jobs', { timeout: 300_000 }, async () => {
  const python = await openClientPython(['aiohttp==3.14.5']);
  const open = () => openFakeBackend({ policy, engine: 'prorl', latencyMs: ({ index }) => (index % 5 === 4 ? 250 : 5) });
  await using first = await open();
  await using second = await open();
  await using service = await TestService.open({ workers: 1, tokenizer: qwen3Folder(), pipeline: { runSlots: 8, initSlots: 4 } });
  const program = join(import.meta.dirname, 'prorl_dapo.py');
  const { stdout } = await promisify(execFile)(python, [program, service.url, first.url, second.url], { timeout: 240_000 });
  const report = JSON.parse(stdout);
  assert.deepEqual([report.batches, report.rows, report.retries], [3, 24, 0]);
  assert.ok(report.filtered > 0 && report.refills > 3 && report.cancelled > 0, stdout);
  for (const status of report.statuses) assert.equal(status.running, true);
  for (;;) {
    const { queued, init, ready, run, evaluate, failed } = (await service.client.status()).rollouts;
    assert.equal(failed, 0);
    if (queued + init + ready + run + evaluate + first.inFlight + second.inFlight === 0) break;
    await pause(50);
  }
});
