// What a PostgreSQL server did between two moments, and what its processes waited for: the statements that took the most time, commits,
// write-ahead log, processor time, and samples of the wait events.

import { readdirSync } from 'node:fs';
import type { PostgresServer } from '@millrace/testkit';
import { Session } from '../../packages/store/src/postgres/engine/session.ts';
import { readCpuMs, readParent } from '../report/processes.ts';

export const probeSettings = ['shared_preload_libraries=pg_stat_statements', 'pg_stat_statements.track=top'];

const sampleMs = 250;

interface StatementCost {
  readonly text: string;
  readonly calls: number;
  readonly totalMs: number;
}

export interface DatabaseActivity {
  readonly seconds: number;
  readonly commits: number;
  readonly walBytes: number;
  /** All of its processes together. */
  readonly cpuMs: number;
  /** Most time first. */
  readonly statements: readonly StatementCost[];
  /** What active processes were seen to do, by the share of the samples. `running` needs a processor. */
  readonly waits: readonly { readonly what: string; readonly share: number }[];
}

export class DatabaseProbe implements AsyncDisposable {
  readonly #session: Session;
  readonly #server: PostgresServer;

  private constructor(session: Session, server: PostgresServer) {
    this.#session = session;
    this.#server = server;
  }

  static async open(server: PostgresServer): Promise<DatabaseProbe> {
    const session = await Session.open(server.address);
    await session.script('CREATE EXTENSION IF NOT EXISTS pg_stat_statements');
    return new DatabaseProbe(session, server);
  }

  /** Runs SQL that is not a part of any operation. */
  async run(sql: string): Promise<void> {
    await this.#session.script(sql);
  }

  /** Watches while the work goes on. */
  async watch(work: Promise<unknown>): Promise<DatabaseActivity> {
    await this.#session.script('SELECT pg_stat_statements_reset()');
    const before = await this.#read();
    const startedAt = performance.now();
    const seen = new Map<string, number>();
    const over = work.then(() => true);
    while (!(await Promise.race([over, new Promise<boolean>((resolve) => setTimeout(resolve, sampleMs, false))]))) await this.#sample(seen);
    const seconds = (performance.now() - startedAt) / 1000;
    const after = await this.#read();
    const samples = [...seen.values()].reduce((sum, count) => sum + count, 0);
    const waits = [...seen].map(([what, count]) => ({ what, share: count / samples })).sort((a, b) => b.share - a.share);
    return {
      seconds,
      commits: after.commits - before.commits,
      walBytes: after.walBytes - before.walBytes,
      cpuMs: after.cpuMs - before.cpuMs,
      statements: await this.#readStatements(),
      waits,
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#session.close();
  }

  async #sample(seen: Map<string, number>): Promise<void> {
    const sql = `SELECT coalesce(wait_event_type || ' ' || wait_event, 'running') AS what, count(*) AS n FROM pg_stat_activity
      WHERE state = 'active' AND pid <> pg_backend_pid() AND backend_type = 'client backend' GROUP BY 1`;
    for (const { what, n } of await this.#session.query<{ what: string; n: number }>(sql)) seen.set(what, (seen.get(what) ?? 0) + n);
  }

  async #read(): Promise<{ commits: number; walBytes: number; cpuMs: number }> {
    // The database's own count of commits comes in late.
    const sql = `SELECT (SELECT coalesce(sum(calls), 0) FROM pg_stat_statements WHERE query = 'COMMIT') AS commits,
      (SELECT wal_bytes FROM pg_stat_wal) AS bytes`;
    const [row] = await this.#session.query<{ commits: number; bytes: number }>(sql);
    return { commits: row?.commits ?? 0, walBytes: row?.bytes ?? 0, cpuMs: readFamilyCpuMs(this.#server.pid ?? 0) };
  }

  async #readStatements(): Promise<StatementCost[]> {
    const sql = `SELECT query AS text, calls, total_exec_time + total_plan_time AS ms FROM pg_stat_statements
      WHERE query NOT LIKE '%pg_stat_%' ORDER BY 3 DESC LIMIT 12`;
    const rows = await this.#session.query<{ text: string; calls: number; ms: number }>(sql);
    return rows.map(({ text, calls, ms }) => ({ text: text.replaceAll(/\s+/g, ' '), calls, totalMs: ms }));
  }
}

function readFamilyCpuMs(parent: number): number {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return pids.reduce((sum, pid) => sum + readIfChild(Number(pid), parent), 0);
}

function readIfChild(pid: number, parent: number): number {
  try {
    return pid === parent || readParent(pid) === parent ? readCpuMs(pid) : 0;
  } catch {
    return 0; // it ended while we looked
  }
}
