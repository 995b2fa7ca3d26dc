// Sandboxes hold a lease of their layer until they are closed.

import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { makeTempFolder } from '@millrace/testkit/plain';
import { LayerCache } from '../../src/layers/layer-cache.ts';
import { holdLayers } from '../../src/layers/layer-holding.ts';
import type { Sandbox, SandboxDriver } from '../../src/sandbox.ts';

/** A driver whose sandboxes do nothing and whose layers are empty folders. */
const driver: SandboxDriver = {
  name: 'none',
  open: async ({ env }) => {
    if (env?.FAILS) throw new Error('it does not start');
    return { ...({} as Sandbox), [Symbol.asyncDispose]: async () => {} };
  },
  freeze: async (_spec, { folder }) => void (await mkdir(join(folder, 'home'), { recursive: true })),
  sweep: async () => 0,
};

test('a sandbox keeps its layer from being removed until it is closed, even if every other lease is released', async () => {
  await using temp = await makeTempFolder('layers');
  const layers = new LayerCache({ driver, runDir: temp.path, maxBytes: 2 ** 30 });
  const holding = holdLayers(driver, layers);
  const { signal } = new AbortController();
  const plan = { spec: {}, key: 'a', prepare: async () => {}, signal, uncharged: <T>(wait: () => Promise<T>) => wait() };
  const lease = (await layers.open(plan)) ?? assert.fail('no layer');
  const sandbox = await holding.open({ layer: lease.folder });
  await assert.rejects(holding.open({ layer: lease.folder, env: { FAILS: '1' } }), /does not start/);
  await lease[Symbol.asyncDispose]();
  const second = layers.hold(lease.folder) ?? assert.fail('the sandbox holds it');
  await second[Symbol.asyncDispose]();
  await sandbox[Symbol.asyncDispose]();
  assert.equal(layers.hold(lease.folder), undefined);
  await assert.rejects(holding.open({ layer: lease.folder }), /has no lease any more/);
});
