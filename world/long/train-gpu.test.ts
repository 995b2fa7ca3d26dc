// The parts of examples/train-gpu that need no GPU, in PyTorch on a CPU: what they compute is compared with the same by hand.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { skipWithoutVllm } from '../engines/vllm.ts';
import { vllmPython } from '../engines/world-cache.ts';

test('truncated importance sampling, accumulated gradients, LoRA, FSDP and untied output layers equal the same by hand', {
  skip: skipWithoutVllm(),
  timeout: 900_000,
}, async (context) => {
  const env = { ...process.env, VLLM_NO_USAGE_STATS: '1', HF_HUB_OFFLINE: '1' };
  const { stderr } = await promisify(execFile)(vllmPython(), [join(import.meta.dirname, 'train_gpu_parts.py')], {
    env,
    maxBuffer: 1 << 24,
  });
  const [ran = ''] = /^Ran \d+ tests/m.exec(stderr) ?? [];
  context.diagnostic(ran);
  assert.equal(ran, 'Ran 9 tests', stderr);
});
