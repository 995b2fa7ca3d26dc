// `millrace worker --join`: a process that knows only an address and a key becomes a machine of the service.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { silentLog } from '@millrace/base/log';
import { openClient } from '@millrace/client';
import { openServer, readConfig } from '@millrace/server';
import { makeTempFolder } from '@millrace/testkit/plain';
import { writeTinyModel } from '../../src/author/local/tiny-model.ts';
import { joinService } from '../../src/operate/join.ts';
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

test('during an upgrade a new worker gets the store itself from a server of the version before, and servers from a new one', async () => {
  const address = 'postgres://millrace@db/millrace';
  const toReply = (url: string, knowsWire: boolean) => {
    const asksWire = url.includes('wire=');
    if (asksWire && !knowsWire)
      return { error: { code: 'bad-request', message: 'wire: unknown field', blame: 'caller', retryable: false } };
    return asksWire ? { config: {}, wire: 1, local_store: null } : { config: { store: { address } }, local_store: null };
  };
  const open = async (knowsWire: boolean) => {
    const server = createServer((request, response) => {
      const reply = toReply(request.url ?? '', knowsWire);
      response.writeHead('error' in reply ? 400 : 200, { 'content-type': 'application/json' }).end(JSON.stringify(reply));
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
  };
  const [before, now] = [await open(false), await open(true)];
  try {
    const old = await joinService({ servers: [before.url] });
    assert.deepEqual([old.store.address, old.store.servers], [address, []]);
    const servers = [now.url, 'http://127.0.0.1:9'];
    const joined = await joinService({ servers });
    assert.deepEqual([joined.store.address, joined.store.servers], [undefined, servers]);
  } finally {
    for (const { server } of [before, now]) {
      server.closeAllConnections();
      server.close();
    }
  }
});
