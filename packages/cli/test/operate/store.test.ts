// `millrace store` on the file of a store that is open, and on one that is not.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { systemClock } from '@millrace/base/clock';
import { silentLog } from '@millrace/base/log';
import { openSqliteStore, type Store, storeFile } from '@millrace/store';
import { makeRollout, makeTempFolder } from '@millrace/testkit';
import { millrace, openIo } from '../fake-io.ts';

async function openStore(data: string): Promise<Store> {
  return await openSqliteStore({ path: join(data, storeFile), clock: systemClock, log: silentLog });
}

test('the store of a running service is shown, compacted and backed up, and its backup is restored elsewhere', async () => {
  await using temporary = await makeTempFolder('store-command');
  const [here, there] = [join(temporary.path, 'here'), join(temporary.path, 'there')];
  const run = (data: string, ...words: string[]) => millrace(['store', ...words, '--data', data], openIo());
  await using store = await openStore(here);
  await store.submit([makeRollout('a'), makeRollout('b')], { maxQueued: 9 });

  const shown = await run(here);
  assert.equal(shown.code, 0, shown.err);
  assert.match(shown.out, /millrace\.db, schema \d+\nfile .*, log .*, reusable .*, free on its disk /);
  assert.match(shown.out, /unfinished +2 /);
  assert.match(shown.out, /^submissions +2 /m);
  assert.equal(JSON.parse((await run(here, 'stats', '--json')).out).outcomes[0].rollouts, 2);
  assert.match((await run(here, 'compact')).out, /given back in .* steps; the write lock was held for|nothing to give back/);

  const backup = join(temporary.path, 'backup.db');
  assert.match((await run(here, 'backup', backup)).out, /backup\.db: .*B, 2 rollouts, schema \d+, checked\n$/);
  const refused = await run(here, 'restore', backup, '--replace');
  assert.deepEqual([refused.code, /is in use: stop the service first/.test(refused.err)], [1, true]);
  assert.match((await run(there, 'restore', backup)).out, /there\/millrace\.db: .*B, 2 rollouts\n$/);
  await using restored = await openStore(there);
  assert.equal((await restored.list({ limit: 9 })).rollouts.length, 2);
});

test('a folder without a store is named in the error', async () => {
  await using temporary = await makeTempFolder('store-command');
  for (const words of [['stats'], ['compact'], ['compact', '--whole'], ['backup', join(temporary.path, 'b.db')]]) {
    const { code, err } = await millrace(['store', ...words, '--data', temporary.path], openIo());
    assert.equal(code, 1);
    assert.match(err, /there is no store .*millrace\.db: name the folder of the store with --data or --config/);
  }
});
