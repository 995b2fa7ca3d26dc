// The PostgreSQL store behind a real pgbouncer: a mode that gives each transaction another connection is refused at the start.

import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { makeTempFolder, PostgresServer, skipPostgres } from '@millrace/testkit';
import { systemClock } from '../../packages/base/src/clock.ts';
import { findOnPath } from '../../packages/base/src/find-on-path.ts';
import { silentLog } from '../../packages/base/src/log.ts';
import { openPostgresStore } from '../../packages/store/src/postgres/postgres.ts';
import { openPostgresBed } from '../../packages/store/test/postgres/bed.ts';

const pgbouncer = findOnPath(['pgbouncer'], `${process.env.PATH}:/usr/sbin`);

describe('a store behind a pooler', { skip: skipPostgres || (pgbouncer === undefined && 'pgbouncer is not installed') }, () => {
  test('transaction and statement mode are refused with the reason, and session mode is used', async () => {
    await using server = await PostgresServer.open();
    await using bed = await openPostgresBed(server);
    for (const [mode, size] of [
      ['transaction', 5],
      ['transaction', 1],
      ['statement', 5],
      ['session', 8],
    ] as const) {
      await using pooler = await openPooler({ address: bed.address, mode, size });
      const opening = openPostgresStore({ address: pooler.address, clock: systemClock, log: silentLog, patienceMs: 2_000 });
      if (mode === 'session') await (await opening)[Symbol.asyncDispose]();
      else
        await assert.rejects(
          opening,
          { message: /pooler that gives each transaction another connection.*pool_mode = session/ },
          `${mode} ${size}`,
        );
    }
  });
});

async function openPooler({ address, mode, size }: { readonly address: string; readonly mode: string; readonly size: number }) {
  const url = new URL(address);
  const temp = await makeTempFolder('pooler');
  chmodSync(temp.path, 0o777);
  const [user, database] = [decodeURIComponent(url.username), url.pathname.slice(1)];
  const settings = { auth_type: 'any', unix_socket_dir: temp.path, listen_port: 6432, pool_mode: mode, default_pool_size: size };
  const ignored = 'extra_float_digits, statement_timeout, lock_timeout, idle_in_transaction_session_timeout, options';
  const lines = Object.entries({ ...settings, ignore_startup_parameters: ignored }).map(([name, value]) => `${name} = ${value}`);
  const file = join(temp.path, 'pgbouncer.ini');
  const target = `host=${url.searchParams.get('host')} port=${url.port || 5432} dbname=${database} user=${user}`;
  writeFileSync(file, `[databases]\n* = ${target}\n[pgbouncer]\n${lines.join('\n')}\n`, { mode: 0o644 });
  const asUser = process.getuid?.() === 0 ? ['--user', 'nobody'] : [];
  const child: ChildProcess = spawn(pgbouncer ?? '', [...asUser, file], { stdio: ['ignore', 'ignore', 'ignore'] });
  while (!existsSync(join(temp.path, '.s.PGSQL.6432')) && child.exitCode === null) await sleep(10);
  url.searchParams.set('host', temp.path);
  url.port = '6432';
  url.searchParams.delete('options');
  return {
    address: url.href,
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
      if (child.exitCode === null) await once(child, 'exit');
      await temp[Symbol.asyncDispose]();
    },
  };
}
