// A PostgreSQL server of the system's packages, in a temporary folder and on a Unix socket there. As root it runs as an ordinary user,
// because PostgreSQL refuses root.

import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync } from 'node:fs';
import { appendFile, chown } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { makeTempFolder, type TempFolder } from '../temp-folder.ts';

const userId = 65534;
const debianFolder = '/usr/lib/postgresql';

/** The folder of the newest version's programs; absent if none is installed. */
export function findPostgres(): string | undefined {
  const versions = existsSync(debianFolder) ? readdirSync(debianFolder) : [];
  const newest = versions.toSorted((a, b) => Number(b) - Number(a)).map((version) => join(debianFolder, version, 'bin'));
  return newest.find((folder) => existsSync(join(folder, 'initdb')));
}

/** Why tests cannot start a server here; false if they can. */
export const skipPostgres = findPostgres() === undefined ? 'PostgreSQL is not installed: apt-get install postgresql' : (false as const);

export interface PostgresOptions {
  /** Commits wait for the disk; off unless set, for tests that never crash it. */
  readonly isDurable?: boolean;
  /** Its folder; a temporary one unless set. */
  readonly folder?: string;
  /** An address of this host that it also listens on. It trusts those who reach it there. */
  readonly host?: string;
  /** More settings, as `name=value`; they win over those of every test. */
  readonly settings?: readonly string[];
  /** Added to the environment of its processes. */
  readonly env?: Readonly<Record<string, string>>;
}

export class PostgresServer implements AsyncDisposable {
  readonly #folder: TempFolder;
  readonly #options: PostgresOptions;
  #process: ChildProcess | undefined;
  #port = 5432;
  #output = '';
  #schemas = 0;

  private constructor(folder: TempFolder, options: PostgresOptions) {
    this.#folder = folder;
    this.#options = options;
  }

  static async open(options: PostgresOptions = {}): Promise<PostgresServer> {
    const folder = options.folder === undefined ? await makeTempFolder('postgres') : keepFolder(options.folder);
    const server = new PostgresServer(folder, options);
    try {
      if (process.getuid?.() === 0) await chown(folder.path, userId, userId);
      const made = [
        '--pgdata',
        server.#data,
        '--username',
        'millrace',
        '--auth',
        'trust',
        '--encoding',
        'UTF8',
        '--locale',
        'C',
        '--no-sync',
      ];
      const [program, ...values] = asUser(toProgram('initdb'), ...made);
      await promisify(execFile)(program, values, { cwd: folder.path });
      if (options.host !== undefined) await server.#openHost(options.host);
      await server.start();
      return server;
    } catch (error) {
      await server[Symbol.asyncDispose]();
      throw error;
    }
  }

  async #openHost(host: string): Promise<void> {
    this.#port = await findFreePort(host);
    await appendFile(join(this.#data, 'pg_hba.conf'), `host all all ${host.replace(/\d+$/, '0/24')} trust\n`);
  }

  get #data(): string {
    return join(this.#folder.path, 'data');
  }

  /** The folder of its socket. */
  get socketFolder(): string {
    return this.#folder.path;
  }

  /** An empty place for a store: a schema that no other call gets. */
  async makeAddress(): Promise<string> {
    const schema = `test_${++this.#schemas}`;
    await this.run(`CREATE SCHEMA ${schema}`);
    return `${this.address}&options=${encodeURIComponent(`-c search_path=${schema}`)}`;
  }

  /** The address of its one database, by its socket. */
  get address(): string {
    return `postgres://millrace@localhost:${this.#port}/postgres?host=${encodeURIComponent(this.#folder.path)}`;
  }

  /** The same over TCP, if it has a `host`. */
  get hostAddress(): string {
    return `postgres://millrace@${this.#options.host}:${this.#port}/postgres`;
  }

  /** Runs SQL and returns its rows, with columns separated by a bar. */
  async run(sql: string): Promise<string[]> {
    const values = [...this.#place, '-v', 'ON_ERROR_STOP=1', '-qAt', '-c', sql];
    const { stdout } = await promisify(execFile)(toProgram('psql'), values);
    return stdout.split('\n').filter((line) => line !== '');
  }

  /**
   * Runs SQL in a transaction and keeps it open for a while, by the clock of this process: `pg_sleep` lasts for days if the date of the server
   * steps back. False if it could not be kept, because the server died for example.
   */
  async hold(sql: string, ms: number): Promise<boolean> {
    const child = spawn(toProgram('psql'), [...this.#place, '-v', 'ON_ERROR_STOP=1', '-qAt'], { stdio: ['pipe', 'pipe', 'ignore'] });
    child.stdin.on('error', () => {}); // it has ended
    const ended = once(child, 'exit');
    child.stdin.write(`BEGIN; ${sql}; SELECT 1;\n`);
    const isHeld = await Promise.race([once(child.stdout, 'data').then(() => true), ended.then(() => false)]);
    if (isHeld) await Promise.race([sleep(ms), ended]);
    child.stdin.end('ROLLBACK;\n');
    const [code]: unknown[] = await ended;
    return isHeld && code === 0;
  }

  get #place(): string[] {
    return ['-h', this.#folder.path, '-p', String(this.#port), '-U', 'millrace', '-d', 'postgres'];
  }

  /** Resolves when it accepts connections. */
  async start(): Promise<void> {
    const durability = this.#options.isDurable ? [] : ['fsync=off', 'full_page_writes=off', 'synchronous_commit=off'];
    const settings = [
      `listen_addresses=${this.#options.host ?? ''}`,
      `port=${this.#port}`,
      `unix_socket_directories=${this.#folder.path}`,
      'max_connections=200',
      'max_wal_size=128MB',
      ...durability,
      ...(this.#options.settings ?? []),
    ];
    // Set by `env`, as the ordinary user: a library that is preloaded must not start as root.
    const variables = Object.entries(this.#options.env ?? {}).map(([name, value]) => `${name}=${value}`);
    const [program, ...values] = asUser(
      'env',
      ...variables,
      toProgram('postgres'),
      '-D',
      this.#data,
      ...settings.flatMap((one) => ['-c', one]),
    );
    // After a crash, the processes of the server before may hold its memory for a moment.
    for (let attempt = 1; ; attempt += 1) {
      const child = spawn(program, values, {
        cwd: this.#folder.path,
        stdio: ['ignore', 'ignore', 'pipe'],
      });
      child.stderr?.setEncoding('utf8').on('data', (text: string) => {
        this.#output = (this.#output + text).slice(-20_000);
      });
      this.#process = child;
      if (await this.#isReady(child)) return;
      if (attempt === 20) throw new Error(`PostgreSQL did not start: ${this.#output}`);
      await sleep(100);
    }
  }

  /** The end of its log. */
  get output(): string {
    return this.#output;
  }

  /** Of its first process. */
  get pid(): number | undefined {
    return this.#process?.pid;
  }

  get isRunning(): boolean {
    return this.#process !== undefined && this.#process.exitCode === null && this.#process.signalCode === null;
  }

  /** SIGQUIT ends it as a crash would, SIGKILL kills it, SIGINT ends it in order. Resolves when it is gone. */
  async stop(signal: 'SIGQUIT' | 'SIGKILL' | 'SIGINT' = 'SIGQUIT'): Promise<void> {
    const child = this.#process;
    if (!child || !this.isRunning) return;
    const exited = once(child, 'exit');
    child.kill(signal);
    await exited;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    await this.#folder[Symbol.asyncDispose]();
  }

  async #isReady(child: ChildProcess): Promise<boolean> {
    while (child.exitCode === null && child.signalCode === null) {
      const values = ['-q', ...this.#place];
      const isUp = await promisify(execFile)(toProgram('pg_isready'), values).then(
        () => true,
        () => false,
      );
      if (isUp) return true;
      await sleep(20);
    }
    return false;
  }
}

async function findFreePort(host: string): Promise<number> {
  const server = createServer().listen(0, host);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

function keepFolder(path: string): TempFolder {
  return { path, [Symbol.asyncDispose]: async () => {} };
}

function toProgram(name: string): string {
  const folder = findPostgres();
  if (folder === undefined) throw new Error(String(skipPostgres));
  return join(folder, name);
}

function asUser(...command: [string, ...string[]]): [string, ...string[]] {
  if (process.getuid?.() !== 0) return command;
  return ['setpriv', '--reuid', String(userId), '--regid', String(userId), '--clear-groups', ...command];
}
