// Where the store is, as the configuration names it.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hidePassword, isPostgresAddress, toStoreAddress } from '../src/store-address.ts';

test('the store is the file in the data folder, unless an address names another file or a database', () => {
  assert.equal(toStoreAddress({ data: '/data', store: {} }), '/data/millrace.db');
  assert.equal(toStoreAddress({ data: '/data', store: { address: '/other/store.db' } }), '/other/store.db');
  assert.deepEqual(
    ['postgres://a/b', 'postgresql://a/b', '/data/postgres', 'postgres.db'].map((address) => isPostgresAddress(address)),
    [true, true, false, false],
  );
});

test('no password of an address is shown', () => {
  assert.equal(hidePassword('postgres://me:secret@host:5432/db'), 'postgres://me@host:5432/db');
  assert.equal(hidePassword('postgres://me@host/db?sslmode=require&password=secret'), 'postgres://me@host/db?sslmode=require&password=…');
  assert.equal(hidePassword('postgres://host/db'), 'postgres://host/db');
});
