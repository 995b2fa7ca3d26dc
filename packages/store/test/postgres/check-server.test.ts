// Servers that cannot keep a store are refused with the reason and what to do. `world/services/pgbouncer.test.ts` has a real pooler.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import pg from 'pg';
import { findVersionFault } from '../../src/postgres/engine/check-server.ts';
import { toStoreError } from '../../src/postgres/engine/faults.ts';

test('a server older than PostgreSQL 14 is refused by what it says it is', () => {
  for (const [number, text] of [
    [130_014, '13.14 (Debian 13.14-0+deb11u1)'],
    [90_624, '9.6.24'],
    [120_000, '12beta1'],
  ] as const)
    assert.match(
      findVersionFault({ number, text }) ?? '',
      new RegExp(`^the server is PostgreSQL ${text.replace(/[+()]/g, '.')}, and .* 14 or newer`),
    );
  for (const number of [140_000, 150_004, 180_000]) assert.equal(findVersionFault({ number, text: 'x' }), undefined);
});

test('a prepared statement of another client is explained by the pooler', () => {
  for (const code of ['42P05', '26000']) {
    const error = Object.assign(new pg.DatabaseError('prepared statement "s0" already exists', 1, 'error'), { code });
    assert.match(toStoreError(error, 'db').message, new RegExp(`^store db: ${code}: .*pool_mode = session`));
  }
});
