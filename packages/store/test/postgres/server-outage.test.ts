// No server for longer than a lease: workers that reach the store through servers could not renew theirs, and lose nothing for it.

import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { workerId } from '@millrace/protocol';
import { FakeClock, PostgresServer, skipPostgres } from '@millrace/testkit';
import { openPostgresBed } from './bed.ts';

const leaseMs = 10_000;
const rules = { leaseMs, maxLosses: 3 };

describe('after a time without a server', { skip: skipPostgres }, () => {
  let opening: Promise<PostgresServer> | undefined;
  after(async () => (await opening)?.[Symbol.asyncDispose]());

  test('a server that starts gives every lease again once; one that starts next to another does not', async () => {
    opening ??= PostgresServer.open();
    const clock = new FakeClock();
    await using bed = await openPostgresBed(await opening, clock);
    const lead = (holder: string) => bed.store.takeDuty({ name: 'lead', holder, leaseMs });
    const isAlive = async () => (await bed.store.workers()).some(({ hasEnded }) => !hasEnded);
    await bed.store.registerWorker({ id: workerId.parse('w'), host: 'far', pid: 1 }, { leaseMs });
    await lead('a');
    clock.advance(3 * leaseMs);
    const next = await bed.another();
    assert.equal(await next.expire(rules), 0);
    assert.equal(await isAlive(), true, 'it has a lease to come back');
    await lead('b');
    clock.advance(leaseMs + 1);
    await lead('b');
    const second = await bed.another();
    await second.expire(rules);
    assert.equal(await isAlive(), false, 'it did not');
  });
});
