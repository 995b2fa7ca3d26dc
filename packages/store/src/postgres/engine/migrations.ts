// The numbered migrations of the PostgreSQL store, run in one transaction under a lock: of the processes that start together, one
// runs them and the others wait. A migration only adds, so that processes of the version before can go on.

import { messageOf, RolloutError } from '@millrace/protocol';
import { loadTables } from './load-tables.ts';
import { functions, logTables } from './log-tables.ts';
import { lossTables } from './loss-tables.ts';
import { machineTables } from './machine-tables.ts';
import { sequencerTables } from './sequencer-tables.ts';
import type { Session } from './session.ts';
import { tables } from './tables.ts';
import { trainerTables } from './trainer-tables.ts';
import { workerCallFunctions } from './worker-call-functions.ts';

interface Migration {
  readonly sql: string;
  /** The oldest schema whose processes can use the tables after it. */
  readonly usableFrom: number;
}

/** What each finished turn of a running rollout added. A process of the version before leaves the turns of rollouts that it ends, and retention deletes them. */
const turnLogTable = `CREATE TABLE IF NOT EXISTS turn_log (
  seq bigint NOT NULL,
  turn bigint NOT NULL,
  attempt bigint NOT NULL,
  body bytea NOT NULL,
  PRIMARY KEY (seq, turn)
);
ALTER TABLE turn_log ALTER COLUMN body SET STORAGE EXTERNAL;`;

const logAndLoads = `${logTables}${functions}${loadTables}${sequencerTables}`;

/** The first makes an empty schema 1. Never edited once released. */
const migrations: readonly Migration[] = [
  { sql: `${tables}${machineTables}${logAndLoads}${lossTables}${trainerTables}${workerCallFunctions}`, usableFrom: 1 },
  { sql: turnLogTable, usableFrom: 1 },
];

const newestSchema = migrations.length;

const versionTable = `CREATE TABLE IF NOT EXISTS store_schema (version bigint NOT NULL, usable_from bigint NOT NULL)`;

interface SchemaRow {
  readonly version: number;
  readonly usable_from: number;
}

/** Throws for a schema that this version cannot use. One that is there needs no lock: hundreds of processes may start at the same time. */
export async function migrate(session: Session): Promise<void> {
  if (checkSchema(await readSchema(session)) === newestSchema) return;
  await session.script('BEGIN');
  try {
    await session.query("SELECT pg_advisory_xact_lock(hashtext('millrace'), hashtext(current_schema()))");
    await session.script(versionTable);
    const version = checkSchema(await readSchema(session));
    if (version < newestSchema) await runMigrations(session, version);
    await session.script('COMMIT');
  } catch (error) {
    await session.script('ROLLBACK').catch(() => {}); // the connection is gone, and with it the transaction
    throw error;
  }
}

async function runMigrations(session: Session, from: number): Promise<void> {
  for (const [index, { sql }] of migrations.slice(from).entries()) {
    try {
      await session.script(sql);
    } catch (error) {
      const message = `the migration of the store from schema ${from + index} failed, and it was left as it was: ${messageOf(error)}`;
      throw session.isBroken ? error : new RolloutError('internal', message, { cause: error });
    }
  }
  const { usableFrom = 1 } = migrations.at(-1) ?? {};
  await session.script('DELETE FROM store_schema');
  await session.query('INSERT INTO store_schema VALUES ($1, $2)', [newestSchema, usableFrom]);
}

async function readSchema(session: Session): Promise<SchemaRow> {
  const [table] = await session.query<{ name: string | null }>("SELECT to_regclass('store_schema')::text AS name");
  const rows = table?.name == null ? [] : await session.query<SchemaRow>('SELECT version, usable_from FROM store_schema');
  return rows[0] ?? { version: 0, usable_from: 0 };
}

/** Its number. */
function checkSchema({ version, usable_from }: SchemaRow): number {
  if (usable_from <= newestSchema) return version;
  const what = `the store has schema ${version}, which needs at least schema ${usable_from}`;
  throw new RolloutError('internal', `${what}; this version of Millrace knows schema ${newestSchema}: start the newer version`);
}
