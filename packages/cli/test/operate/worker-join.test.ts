// `millrace worker --join`: a process that knows only an address and a key becomes a machine of the service.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { silentLog } from '@millrace/base/log';
import { openClient } from '@millrace/client';
import { openServer, readConfig } from '@millrace/server';
import { makeTempFolder } from '@millrace/testkit/plain';
import { writeTinyModel } from '../../src/author/local/tiny-model.ts';
import { millrace, openIo } from '../fake-io.ts';

const main = join(import.meta.dirname, '../../src/main.ts');
const key = 'a-key-with-every-right';
const readKey = 'a-key-that-only-reads';
const workerKey = 'a-key-of-a-machine-1';

test('a worker that joins with an address and a key is a machine, and says when it leaves', { timeout: 120_000 }, async () => {
  await using folder = await makeTempFolder('join');
  await writeTinyModel(join(folder.path, 'model'));
  const config = readConfig(undefined, {
    data: join(folder.path, 'data'),
    'model.tokenizer': join(folder.path, 'model'),
    'http.port': 0,
    'http.keys': [key],
    'http.readKeys': [readKey],
    'http.workerKeys': [workerKey],
    'sandbox.warm.sandboxes': 0,
  });
  await using server = await openServer(config, { log: silentLog });
  const url = await server.listen();
  await using client = openClient({ url, key });
  const worker = spawn(process.execPath, [main, 'worker', '--join', url, '--workers', '1', '--label', 'disk=fast'], {
    env: { ...process.env, MILLRACE_KEY: workerKey, SLURMD_NODENAME: 'node-7', TMPDIR: folder.path },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const exited = once(worker, 'exit');
  try {
    while ((await client.machines())[0]?.labels.disk !== 'fast') await pause(100);
    const [machine] = await client.machines();
    assert.deepEqual([machine?.name, machine?.state, machine?.workers], ['node-7', 'live', 1]);
    assert.deepEqual((await client.status()).machines?.length, 1);
  } finally {
    worker.kill('SIGTERM');
  }
  assert.deepEqual(await exited, [0, null]);
  while ((await client.machines())[0]?.state !== 'left') await pause(100);

  const refused = await millrace(['worker', '--join', url, '--key', readKey], openIo());
  assert.equal(refused.code, 1);
  assert.match(refused.err, /GET \/v1\/join needs a key with the right to work/);
});

test('what a worker gets from the service holds its settings, absolute paths, and no key', async () => {
  await using folder = await makeTempFolder('join');
  const config = readConfig(undefined, { data: folder.path, 'http.port': 0, 'http.keys': [key], 'pipeline.leaseMs': 4000, scenarios: [] });
  await using server = await openServer(config, { log: silentLog });
  await using client = openClient({ url: await server.listen(), key });
  const settings = await client.workerSettings();
  assert.ok(!JSON.stringify(settings).includes(key));
  assert.equal(settings.config.data, folder.path);
  assert.deepEqual([settings.config.slurm, settings.config.run], [undefined, undefined]);
  assert.equal(readConfig(undefined, {}, settings.config).pipeline.leaseMs, 4000);
  assert.notEqual(settings.local_store, null, 'its store is a file of this machine');
  const wired = await client.workerSettings({ wire: 1 });
  assert.deepEqual([wired.wire, wired.local_store, wired.config.store, wired.config.data], [1, null, undefined, undefined]);
  await assert.rejects(client.workerSettings({ wire: 2 }), { code: 'conflict', message: /replace the servers by the newer version first/ });
});
