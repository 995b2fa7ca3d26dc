// The PostgreSQL that Millrace runs itself. As root, the same file runs once more as an ordinary user, because PostgreSQL refuses root.

import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { silentLog } from '@millrace/base/log';
import { makeTempFolder, runAsUser, skipAsUser } from '@millrace/testkit';
import { findPostgres } from '../../src/cluster/postgres-programs.ts';
import { openRootlessPostgres } from '../../src/cluster/rootless-postgres.ts';

const isRoot = process.getuid?.() === 0;
const programs = await findPostgres().catch(() => undefined);
const missing = programs === undefined ? 'there is no PostgreSQL server; try: apt-get install postgresql' : false;
const host = '127.0.0.1';

if (isRoot) defineForRoot();
else defineForUser();

function defineForRoot(): void {
  test('an ordinary user runs a PostgreSQL', { skip: skipAsUser || missing, timeout: 120_000 }, async () => {
    await runAsUser(import.meta.filename, { least: 3 });
  });

  test('PostgreSQL is not started as root', async () => {
    await assert.rejects(openRootlessPostgres({ folder: '/nowhere', host, log: silentLog }), /refuses to run as root/);
  });
}

function defineForUser(): void {
  const options = { skip: missing, timeout: 120_000 };

  test('a rootless PostgreSQL needs its password, keeps its data, and continues at the same address', options, async () => {
    await using temp = await makeTempFolder('pg');
    const folder = join(temp.path, 'store');
    let url = '';
    {
      await using postgres = await openRootlessPostgres({ folder, host, log: silentLog });
      ({ url } = postgres);
      assert.equal(ask(url, 'create table t (n int); insert into t values (42); select n from t'), '42');
      const wrong = url.replace(/:[^:@]+@/, ':wrong@');
      assert.throws(() => ask(wrong, 'select 1'), /password authentication failed/);
      assert.equal((await stat(join(folder, 'password'))).mode & 0o777, 0o600);
      await assert.rejects(openRootlessPostgres({ folder, host, log: silentLog }), /another process of this machine runs/);
    }
    assert.throws(() => ask(url, 'select 1'), /refused/);
    await using again = await openRootlessPostgres({ folder, host, log: silentLog });
    assert.equal(again.url, url);
    assert.equal(ask(again.url, 'select n from t'), '42');
  });

  test('a start takes over from a process that was killed and left its database running', options, async () => {
    await using temp = await makeTempFolder('pg');
    const folder = join(temp.path, 'store');
    const program = `import { silentLog } from '@millrace/base/log'; import { openRootlessPostgres } from '@millrace/server';
      const { pid } = await openRootlessPostgres({ folder: process.argv[1], host: '${host}', log: silentLog });
      console.log(pid); setInterval(() => {}, 1000);`;
    const holder = spawn(process.execPath, ['--input-type=module', '-e', program, folder], {
      cwd: import.meta.dirname,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [line] = await once(holder.stdout, 'data');
    holder.kill('SIGKILL');
    await once(holder, 'exit');
    const orphan = Number(String(line));
    assert.ok(process.kill(orphan, 0), 'it runs on');
    await using postgres = await openRootlessPostgres({ folder, host, log: silentLog });
    assert.notEqual(postgres.pid, orphan);
    assert.equal(ask(postgres.url, 'select 7'), '7');
  });

  test('a PostgreSQL that dies is reported, with the place of its log', options, async () => {
    await using temp = await makeTempFolder('pg');
    const folder = join(temp.path, 'store');
    await using postgres = await openRootlessPostgres({ folder, host, log: silentLog });
    process.kill(postgres.pid, 'SIGQUIT');
    assert.match(await postgres.died, /ended with .*postgres\.log/);
    assert.match(await readFile(join(folder, 'postgres.log'), 'utf8'), /immediate shutdown/);
  });
}

/** The last line that psql prints. */
function ask(url: string, sql: string): string {
  return (
    execFileSync('psql', [url, '-qAtc', sql], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
      .trim()
      .split('\n')
      .at(-1) ?? ''
  );
}
