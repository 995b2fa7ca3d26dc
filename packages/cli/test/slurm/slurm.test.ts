// The parts of `millrace slurm` that need no Slurm: the scripts, and which nodes are released. world/services/slurm.test.ts runs it all.

import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import type { MachineView } from '@millrace/protocol';
import { makeTempFolder } from '@millrace/testkit/plain';
import type { SlurmJob } from '../../src/slurm/deployment/queue.ts';
import { chooseReleased } from '../../src/slurm/scale.ts';
import { renderUp } from '../../src/slurm/up.ts';
import { millrace, openIo } from '../fake-io.ts';

async function render(slurm: object, ...args: string[]): Promise<{ code: number; out: string; err: string }> {
  await using temp = await makeTempFolder('slurm');
  const path = join(temp.path, 'cluster.json');
  await writeFile(path, JSON.stringify({ slurm: { folder: '/shared/millrace', ...slurm } }));
  return await millrace(['slurm', 'render', ...args, '--config', path], openIo());
}

test('the head asks for its own resources, one at a time, and on the node that holds the store', async () => {
  const { out } = await render(
    { name: 'math', partition: 'cpu', account: 'lab', time: '12:00:00', head: { partition: 'long', cpus: 4, node: 'n7' } },
    'head',
  );
  for (const line of [
    '--job-name=millrace-math-head',
    '--partition=long',
    '--account=lab',
    '--time=12:00:00',
    '--cpus-per-task=4',
    '--nodelist=n7',
    '--dependency=singleton',
    '--requeue',
    '--signal=B:TERM@60',
    '--output=/shared/millrace/math/logs/head-%j.log',
  ])
    assert.ok(out.includes(`#SBATCH ${line}\n`), `${line} is not in\n${out}`);
});

test('workers and LLM servers ask for GPUs, whole nodes and more; scripts are valid bash', async () => {
  const slurm = {
    setup: ['module load apptainer'],
    worker: { exclusive: true, options: ['--reservation=rl'] },
    llm: { nodes: 2, gpus: 'h100:8', command: 'vllm serve m --port {port}' },
  };
  const { out } = await render(slurm);
  assert.match(out, /#SBATCH --exclusive\n/);
  assert.match(out, /#SBATCH --reservation=rl\n/);
  assert.match(out, /#SBATCH --gpus-per-node=h100:8\n/);
  assert.match(out, /\nmodule load apptainer\n/);
  assert.equal(out.match(/^#!\/bin\/bash$/gm)?.length, 3);
  execFileSync('bash', ['-n'], { input: out });
});

test('a job whose program crashes goes back into the queue, and one that is asked to end while it starts does not', async () => {
  await using temp = await makeTempFolder('slurm');
  await writeFile(join(temp.path, 'scontrol'), '#!/bin/sh\nexit 1\n', { mode: 0o755 }); // so that the script does not wait for Slurm to end it
  const { out } = await render({}, 'worker');
  const start = (line: string) => {
    const path = join(temp.path, 'job.sh');
    writeFileSync(
      path,
      out.replace(/^.* slurm node .* &$/m, () => line),
    );
    return spawn('bash', [path], { env: { PATH: `${temp.path}:/usr/bin:/bin` }, stdio: ['ignore', 'pipe', 'inherit'] });
  };
  const crashed = start('false &');
  assert.match(await text(crashed.stdout), /ended with exit code 1; this job goes back into the queue/);
  const afterStart = '{ echo started; exec sleep 60; } &';
  const beforeIdIsKnown = 'sleep 60 & kill -TERM $$';
  for (const line of [afterStart, beforeIdIsKnown]) {
    const asked = start(line);
    const ended = once(asked, 'exit');
    asked.stdout.once('data', () => asked.kill('SIGTERM'));
    assert.doesNotMatch(await text(asked.stdout), /queue/);
    assert.equal((await ended)[0], 143);
  }
});

test('a field that would be a second line of a script is refused by name', async () => {
  const { code, err } = await render({ setup: ['true\nrm -rf ~'] });
  assert.equal(code, 2);
  assert.match(err, /slurm\.setup/);
});

test('scaling down releases nodes that wait first, then those that hold the fewest rollouts', () => {
  const job = (id: string, state: string, node = ''): SlurmJob => ({ id, role: 'worker', state, node, reason: '', elapsed: '', limit: '' });
  const machine = (name: string, held: number) => ({ name, held }) as MachineView;
  const jobs = [job('1_0', 'RUNNING', 'a'), job('1_1', 'RUNNING', 'b'), job('1_2', 'RUNNING', 'c'), job('1_3', 'PENDING')];
  const machines = [machine('a', 5), machine('b', 1), machine('c', 9)];
  assert.deepEqual(
    chooseReleased(jobs, machines, 3).map(({ id }) => id),
    ['1_3', '1_1', '1_0'],
  );
});

test('what up tells to type works as it is: the status command names the same configuration', () => {
  const head = { url: 'http://n1:8007', node: 'n1' };
  const up = (file?: string) => renderUp(head, { key: 'k', name: 'math', nodes: 2, file });
  assert.match(up('cluster.json'), /^ {2}millrace slurm status --config cluster\.json +# jobs, machines, queue$/m);
  assert.match(up(), /^ {2}millrace slurm status +# jobs/m);
});
