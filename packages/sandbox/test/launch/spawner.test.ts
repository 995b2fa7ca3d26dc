// The spawner starts programs for its worker, reports how they end, and ends with it.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { sleep } from '@millrace/base/clock';
import { readProcess } from '@millrace/base/processes';
import { findExecutor } from '../../src/executor/executor-files.ts';
import { Spawner } from '../../src/launch/spawner.ts';

const program = await findExecutor();
const nothing = async () => {};

function start(spawner: Spawner, script: string, { keeps = true, env = {}, onOrphaned = nothing } = {}) {
  const options = ['files', '64', ...(keeps ? ['keep', '3'] : [])];
  return spawner.start([program, 'enter', ...options, '--', '/bin/sh', '-c', script], { env, reportsPid: keeps, onOrphaned });
}

test('what a program reports arrives while it runs, and its end with its standard error', async () => {
  const spawner = new Spawner(program);
  const holder = start(spawner, 'echo "$NAME" >&3; exec 3>&-; read -r line </proc/self/stat; echo "bad: $line" >&2; exit 3', {
    env: { NAME: 'a name' },
  });
  assert.equal(await holder.report, 'a name\n');
  const ended = await holder.ended;
  const [, number, group, session] = /^exit 3: bad: (\d+) \(sh\) R \d+ (\d+) (\d+) /.exec(ended) ?? assert.fail(ended);
  assert.equal(Number(number), await holder.pid);
  assert.deepEqual([group, session], [number, number], 'it has its own session');
});

test('several programs run at once, and one is killed without the others', async () => {
  const spawner = new Spawner(program);
  const killed = start(spawner, 'echo up >&3; exec 3>&-; exec sleep 1000');
  const others = Array.from({ length: 20 }, (_, at) => start(spawner, `exit ${at}`, { keeps: false }));
  assert.equal(await killed.report, 'up\n');
  killed.kill();
  assert.equal(await killed.ended, 'ended by SIGKILL');
  assert.deepEqual(
    await Promise.all(others.map(({ ended }) => ended)),
    Array.from({ length: 20 }, (_, at) => `exit ${at}`),
  );
  killed.kill();
});

test('a program that does not exist, and arguments that none can have, are refused', async () => {
  const spawner = new Spawner(program);
  const options = { env: {}, reportsPid: true, onOrphaned: nothing };
  const missing = spawner.start([program, 'enter', 'files', '64', '--', '/no/such/program'], options);
  assert.match(await missing.ended, /^exit 127: .*not found/);
  assert.equal(await missing.report, '');
  assert.throws(() => spawner.start([program, 'enter', '--', 'a\0b'], options), /null byte/);
});

test('what a spawner that died has started is cleaned up, and the next program has a new spawner', async () => {
  const spawner = new Spawner(program);
  const order: string[] = [];
  const holder = start(spawner, 'echo $PPID >&3; exec 3>&-; exec sleep 1000', { onOrphaned: async () => void order.push('orphaned') });
  const own = await holder.pid;
  const first = Number(await holder.report);
  process.kill(first, 'SIGKILL');
  order.push(await holder.ended);
  assert.deepEqual(order, ['orphaned', 'its spawner: ended by SIGKILL']);
  process.kill(own ?? assert.fail(), 'SIGKILL');
  const next = start(spawner, 'echo $PPID >&3');
  assert.notEqual(Number(await next.report), first);
  assert.equal(await next.ended, 'exit 0');
});

test('it ends with its worker, however that ends, and keeps no worker alive', async () => {
  for (const [what, code, signal] of [
    ['setInterval(() => {}, 1e6)', null, 'SIGKILL'],
    ['0', 0, null],
  ] as const) {
    const text = `
      import { Spawner } from ${JSON.stringify(new URL('../../src/launch/spawner.ts', import.meta.url).href)};
      const options = { env: {}, reportsPid: true, onOrphaned: async () => {} };
      const holder = new Spawner(${JSON.stringify(program)}).start([${JSON.stringify(program)}, 'enter', 'keep', '3', '--', '/bin/sh', '-c', 'echo $PPID >&3'], options);
      console.log((await holder.report).trim());
      await holder.ended;
      ${what}`;
    const worker = spawn(process.execPath, ['--input-type=module', '-e', text], { stdio: ['ignore', 'pipe', 'inherit'] });
    const exit = once(worker, 'exit');
    const [line] = await once(createInterface(worker.stdout), 'line');
    if (signal) worker.kill(signal);
    assert.deepEqual(await exit, [code, signal]);
    while (readProcess(Number(line)) !== undefined) await sleep(10);
  }
});
