// The callbacks for trackers with the trackers themselves, from PyPI: W&B offline, MLflow on SQLite and TensorBoard. What each has on its
// disk afterwards is read with its own code.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { makeTempFolder } from '@millrace/testkit/plain';
import { z } from 'zod';
import { openPython } from '../engines/python-packages.ts';

const packages = ['wandb==0.31.0', 'mlflow==3.17.2', 'tensorboard==2.21.0', 'tensorboardX==2.6.5'];
const root = join(import.meta.dirname, '../..');
const points = z.record(z.string(), z.array(z.tuple([z.int(), z.number()])));
const trackers = z.object({ wandb: points, mlflow: points, tensorboard: points });

test('W&B, MLflow and TensorBoard have every number of every step, under a name that they accept', { timeout: 900_000 }, async () => {
  await using folder = await makeTempFolder('trackers');
  const python = await openPython({ name: 'trackers', packages });
  const sources = ['client-python', 'trainers-python'].map((name) => join(root, 'packages', name, 'src')).join(':');
  const env = { ...process.env, HOME: folder.path, PYTHONPATH: sources, WANDB_MODE: 'offline' };
  const running = promisify(execFile)(python, [join(import.meta.dirname, 'trackers/write_and_read.py')], { env, maxBuffer: 1 << 24 });
  running.child.stdin?.end(JSON.stringify({ folder: folder.path }));
  const { stdout } = await running;
  const found = trackers.parse(JSON.parse(stdout.trim().split('\n').at(-1) ?? ''));
  for (const [tracker, names] of Object.entries({
    wandb: { backend: 'trainer/mismatch/gpu-0:8000', kl: 'kl(p||q)', part: 'rollout/score/part (a)' },
    mlflow: { backend: 'trainer/mismatch/gpu-0/8000', kl: 'kl_p__q_', part: 'rollout/score/part _a_' },
    tensorboard: { backend: 'trainer/mismatch/gpu-0:8000', kl: 'kl(p||q)', part: 'rollout/score/part (a)' },
  })) {
    const seen = found[tracker as keyof typeof found];
    assert.deepEqual(roundOf(seen['trainer/loss']), [[0, 1], [1, 0.5], [2, 0.333]], tracker); // biome-ignore format: points
    assert.deepEqual(roundOf(seen['rollout/reward/mean']), [[0, 0], [1, 0.25], [2, 0.5]], tracker); // biome-ignore format: points
    assert.deepEqual([names.backend, names.kl, names.part].map((name) => seen[name]?.at(-1)), [[2, 0.5], [2, 0.125], [2, 1]], tracker); // biome-ignore format: points
    assert.equal(seen['trainer/clip_share'], undefined, `${tracker}: what is not finite is left out`);
  }
});

/** TensorBoard has 32 bits. */
function roundOf(seen: readonly (readonly [number, number])[] = []): number[][] {
  return seen.map(([step, value]) => [step, Math.round(1000 * value) / 1000]);
}
