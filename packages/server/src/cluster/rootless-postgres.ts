// A PostgreSQL that Millrace runs itself, as the user who started it, in a folder on a disk of this machine: for clusters where no one
// runs one. The folder holds the data, the password and the last port, so that the next start continues with the same database.

import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { sleep } from '@millrace/base/clock';
import { openFileLock } from '@millrace/base/file-lock';
import { chooseFreePort } from '@millrace/base/free-port';
import type { Log } from '@millrace/base/log';
import { networkFileSystemOf } from '@millrace/base/network-file-system';
import { runProgram } from '@millrace/base/run-program';
import { writeWhole } from '@millrace/base/write-whole';
import { messageOf } from '@millrace/protocol';
import { findPostgres } from './postgres-programs.ts';
import { isProcessAlive, readPostmaster } from './postmaster.ts';

interface RootlessPostgresOptions {
  /** On a disk of this machine; made if it does not exist. */
  readonly folder: string;
  /** The address that other machines reach. */
  readonly host: string;
  /** The folder of initdb and postgres; found where Debian, Red Hat and PATH have them by default. */
  readonly programs?: string;
  /** Allows a folder on a network file system. */
  readonly allowNetworkFolder?: boolean;
  readonly maxConnections?: number;
  readonly log: Log;
}

export interface RootlessPostgres extends AsyncDisposable {
  /** With user and password. */
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  /** Resolves with the reason when it ends without being asked. */
  readonly died: Promise<string>;
}

const user = 'millrace';
/** A process that was killed releases its lock a moment later. */
const lockMs = 5000;
const startMs = 60_000;
const stopMs = 30_000;
const pollMs = 50;

/** Throws an Error that names the folder or the program and what to do. Disposing it stops the database and keeps the folder. */
export async function openRootlessPostgres(options: RootlessPostgresOptions): Promise<RootlessPostgres> {
  const { folder, host, log, maxConnections = 400 } = options;
  if (process.getuid?.() === 0) throw new Error('PostgreSQL refuses to run as root: start this as an ordinary user');
  checkFolder(options);
  const programs = await findPostgres(options.programs);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await using stack = new AsyncDisposableStack();
  stack.use(await takeFolder(folder));
  const data = join(folder, 'data');
  await stopOrphan(data, log);
  const password = await preparePassword(folder);
  if (!(await isInitialised(data))) await initialise({ folder, data, initdb: programs.initdb });
  const port = await chooseFreePort(host, Number(await readText(join(folder, 'port'))));
  await writeFile(join(folder, 'port'), String(port));
  const child = start({ program: programs.postgres, folder, data, host, port, maxConnections });
  const exited = once(child, 'exit').then(([code, signal]) => `exit code ${code ?? signal}`, messageOf);
  stack.defer(() => stop(child, exited));
  await waitUntilReady({ child, data, exited, logPath: join(folder, 'postgres.log') });
  log.info('postgres-start', { folder, port });
  const died = Promise.withResolvers<string>();
  let isStopping = false;
  void exited.then((why) => isStopping || died.resolve(`PostgreSQL in ${folder} ended with ${why}; see ${join(folder, 'postgres.log')}`));
  const owned = stack.move();
  return {
    url: `postgres://${user}:${password}@${host.includes(':') ? `[${host}]` : host}:${port}/postgres`,
    port,
    pid: child.pid ?? 0,
    died: died.promise,
    async [Symbol.asyncDispose]() {
      isStopping = true;
      await owned[Symbol.asyncDispose]();
    },
  };
}

async function takeFolder(folder: string): Promise<AsyncDisposable> {
  const signal = AbortSignal.timeout(lockMs);
  try {
    return await openFileLock(join(folder, 'lock'), { signal });
  } catch (error) {
    if (signal.aborted) throw new Error(`another process of this machine runs the PostgreSQL in ${folder}`);
    throw error;
  }
}

function checkFolder({ folder, allowNetworkFolder = false }: RootlessPostgresOptions): void {
  const network = networkFileSystemOf(folder);
  if (network === undefined || allowNetworkFolder) return;
  throw new Error(
    `${folder} is on a network file system (${network}), where two machines could open the same database: choose a folder on a disk of the machine, such as one under /tmp or /scratch`,
  );
}

async function preparePassword(folder: string): Promise<string> {
  const path = join(folder, 'password');
  const known = await readText(path);
  if (known !== '') return known;
  const password = randomBytes(24).toString('base64url');
  await writeWhole(path, password); // before it is used: a password that is lost after initdb locks everyone out
  return password;
}

async function isInitialised(data: string): Promise<boolean> {
  return (await readText(join(data, 'PG_VERSION'))) !== '';
}

/** Into another folder first: a start that is cut off leaves nothing that looks like a database. */
async function initialise({ folder, data, initdb }: { folder: string; data: string; initdb: string }): Promise<void> {
  const fresh = join(folder, 'data.new');
  await rm(fresh, { recursive: true, force: true });
  const flags = ['--auth=scram-sha-256', `--pwfile=${join(folder, 'password')}`, '--encoding=UTF8', '--locale=C'];
  await runProgram([initdb, '-D', fresh, '-U', user, ...flags], { timeoutMs: startMs });
  // Every connection needs the password, those of this machine too: other users share it.
  await writeFile(join(fresh, 'pg_hba.conf'), 'host all all all scram-sha-256\n');
  await rename(fresh, data);
}

interface StartOptions {
  readonly program: string;
  readonly folder: string;
  readonly data: string;
  readonly host: string;
  readonly port: number;
  readonly maxConnections: number;
}

function start({ program, folder, data, host, port, maxConnections }: StartOptions): ChildProcess {
  const settings = {
    listen_addresses: host,
    unix_socket_directories: '',
    max_connections: maxConnections,
    shared_buffers: '256MB',
    // A machine that vanished must not hold a session, and its locks, for hours.
    tcp_keepalives_idle: 10,
    tcp_keepalives_interval: 5,
    tcp_keepalives_count: 3,
    tcp_user_timeout: 20_000,
  };
  const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const log = openSync(join(folder, 'postgres.log'), 'a', 0o600);
  // In its own session: a Ctrl-C in the terminal is for Millrace, which stops the database last.
  const child = spawn(program, ['-D', data, '-p', String(port), ...flags], { detached: true, stdio: ['ignore', log, log] });
  closeSync(log);
  return child;
}

interface Waiting {
  readonly child: ChildProcess;
  readonly data: string;
  readonly exited: Promise<string>;
  readonly logPath: string;
}

async function waitUntilReady({ child, data, exited, logPath }: Waiting): Promise<void> {
  let ended: string | undefined;
  void exited.then((why) => {
    ended = why;
  });
  for (let waited = 0; waited < startMs; waited += pollMs) {
    if (ended !== undefined) throw new Error(`PostgreSQL in ${data} did not start (${ended}): ${await readEnd(logPath)}`);
    const postmaster = await readPostmaster(data);
    if (postmaster?.pid === child.pid && postmaster?.isReady) return;
    await sleep(pollMs);
  }
  throw new Error(`PostgreSQL in ${data} was not ready after ${startMs / 1000} s: ${await readEnd(logPath)}`);
}

async function stop(child: ChildProcess, exited: Promise<string>): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGINT'); // fast: sessions end, what is committed is on disk
  const patience = new AbortController();
  const overdue = sleep(stopMs, { signal: patience.signal }).then(
    () => void child.kill('SIGQUIT'), // immediate: the next start recovers from the log
    () => {}, // it ended in time
  );
  await exited;
  patience.abort();
  await overdue;
}

/** A process that held our lock and is gone may have left its database running. */
async function stopOrphan(data: string, log: Log): Promise<void> {
  const orphan = await readPostmaster(data);
  if (orphan === undefined || !(await isProcessAlive(orphan.pid, data))) return;
  log.warn('postgres-orphan', { data, pid: orphan.pid });
  process.kill(orphan.pid, 'SIGINT');
  for (let waited = 0; waited < stopMs; waited += pollMs) {
    if (!(await isProcessAlive(orphan.pid, data))) return;
    await sleep(pollMs);
  }
  throw new Error(`the PostgreSQL of an earlier run (process ${orphan.pid}) in ${data} does not stop: end it by hand`);
}

async function readText(path: string): Promise<string> {
  return (await readFile(path, 'utf8').catch(() => '')).trim();
}

async function readEnd(path: string): Promise<string> {
  return (await readText(path)).split('\n').slice(-5).join('\n');
}
