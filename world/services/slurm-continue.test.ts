// Jobs of two minutes on a real Slurm carry longer rollouts to their end: at each time limit the workers save what runs and hand it
// back, and the next allocation goes on from there, in other jobs and run folders.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openClient } from '@millrace/client';
import { findWrongToken } from '@millrace/testkit';
import { SlurmCluster } from '../engines/slurm-cluster.ts';
import {
  checkNothingLeft,
  findDeploymentSkip,
  listRunFolders,
  prepareDeployment,
  succeed,
  until,
  upReply,
} from '../engines/slurm-deployment.ts';
import { longTurns } from './slurm-continue-policy.ts';

const skip = await findDeploymentSkip();
const name = 'long';
const rollouts = 6;
const mostAllocations = 12;

test('jobs of two minutes carry longer rollouts to their end, with every file and variable', { skip, timeout: 1_800_000 }, async () => {
  const startedAt = performance.now();
  const note = (text: string) => console.log(`${((performance.now() - startedAt) / 1000).toFixed(0)} s: ${text}`);
  await using cluster = await SlurmCluster.open({ nodes: 3, cpus: 4 });
  const { millrace } = await prepareDeployment(cluster, {
    ...{ name, leaseMs: 5000, workerNodes: 1, graceSeconds: 30, time: '2:00', driver: 'bubblewrap', latencyMs: 10_000 },
    policy: 'world/services/slurm-continue-policy.ts',
  });
  const before = await listRunFolders(name);
  const up = async () => upReply.parse(JSON.parse(succeed(await millrace('slurm', 'up', '--wait', '5m', '--json')).stdout));
  const ids = Array.from({ length: rollouts }, (_, index) => `r${index}`);
  const task = { instruction: 'do it', check: `test $(wc -l <steps) = ${longTurns}` };
  let url = '';
  for (let allocation = 1; ; allocation += 1) {
    assert.ok(allocation <= mostAllocations, 'they come to their end');
    const head = await up();
    ({ url } = head);
    await using client = openClient(head);
    if (allocation === 1) await client.submit(ids.map((id) => ({ id, scenario: 'shell', task, limits: { max_turns: longTurns + 1 } })));
    const hasEnded = async () => (await client.status()).rollouts.done === rollouts;
    const isOver = async () => (await cluster.run(['squeue', '-h'])).stdout === '';
    await until('an end', async () => (await isOver()) || (await hasEnded().catch(() => false)));
    note(`allocation ${allocation}`);
    if (await isOver()) continue;
    for (const id of ids) {
      const { reward, result, failures, attempt } = await client.get(id);
      note(`${id}: attempt ${attempt}, continued ${JSON.stringify(result?.continued)}`);
      assert.deepEqual([reward, result?.turns], [1, longTurns + 1], JSON.stringify(failures));
      assert.ok((result?.continued?.times ?? 0) >= 1);
      const trajectory = await client.trajectory(id);
      assert.deepEqual(findWrongToken(trajectory), []);
      assert.ok(!trajectory.segments.some(({ kind, text }) => kind === 'observation' && text.includes('BAD')), id);
    }
    break;
  }
  succeed(await millrace('slurm', 'down', '--purge'));
  await checkNothingLeft(cluster, millrace, { name, url, before });
});
