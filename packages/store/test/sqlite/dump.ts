// A SQLite database as text, and back: the schema and all rows, so that a fixture can be read in a review and compared in a test.

import type { DatabaseSync, SQLOutputValue } from 'node:sqlite';

interface SchemaRow {
  readonly type: string;
  readonly name: string;
  readonly sql: string;
}

/** Tables first, then their rows, then indexes and triggers. */
export function dumpDatabase(db: DatabaseSync): string {
  const schema = readSchema(db);
  const { user_version: version } = { ...db.prepare('PRAGMA user_version').get() };
  const tables = schema.filter(({ type }) => type === 'table');
  const rows = [...tables.map(({ name }) => name), 'sqlite_sequence'].flatMap((table) => dumpRows(db, table));
  const others = schema.filter(({ type }) => type !== 'table');
  const statements = ['DELETE FROM sqlite_sequence', ...rows, ...others.map(({ sql }) => sql), `PRAGMA user_version = ${version}`];
  return [...tables.map(({ sql }) => sql), ...statements].map((statement) => `${statement};\n`).join('');
}

export function readSchema(db: DatabaseSync): SchemaRow[] {
  const sql = "SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY name";
  return db.prepare(sql).all() as unknown as SchemaRow[];
}

function dumpRows(db: DatabaseSync, table: string): string[] {
  // Generated columns have no value of their own.
  const stored = db.prepare('SELECT name FROM pragma_table_xinfo(?) WHERE hidden = 0').all(table);
  const columns = stored.map(({ name }) => String(name)).join(', ');
  return db
    .prepare(`SELECT ${columns} FROM ${table}`)
    .all()
    .map((row) => `INSERT INTO ${table} (${columns}) VALUES (${Object.values(row).map(render).join(', ')})`);
}

function render(value: SQLOutputValue): string {
  if (value === null) return 'NULL';
  if (value instanceof Uint8Array) return `X'${Buffer.from(value).toString('hex')}'`;
  return typeof value === 'string' ? `'${value.replaceAll("'", "''")}'` : String(value);
}
