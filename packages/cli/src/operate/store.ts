// `millrace store`: what the store holds, giving space back to the disk, and backups. It works on the file itself, on the machine of
// the service; all but `restore` while the service runs.

import { messageOf } from '@millrace/protocol';
import {
  backupStore,
  type CompactReport,
  compactStore,
  compactWholeStore,
  hidePassword,
  isPostgresAddress,
  readStoreStats,
  restoreStore,
  type StoreStats,
  toStoreAddress,
} from '@millrace/store';
import { type Arguments, type Command, type CommandGroup, type Io, jsonOption, UsageError } from '../command/command.ts';
import { renderTable, toTableOptions } from '../terminal/table.ts';
import { toBytes, toCount } from '../terminal/text.ts';
import { configOptions, toConfig } from './config-options.ts';

const where = { config: configOptions.config, data: configOptions.data, store: configOptions.store };

const stats: Command = {
  name: 'store stats',
  summary: 'Shows rows and bytes by table and by outcome, and what is free. Reads the whole file.',
  options: { ...where, ...jsonOption },
  examples: ['millrace store', 'millrace store stats --json'],
  async run(args, io) {
    const read = await readStoreStats(toPath(args, io));
    io.stdout.write(args.flag('json') ? `${JSON.stringify(read, undefined, 2)}\n` : renderStats(read, io));
    return 0;
  },
};

const compact: Command = {
  name: 'store compact',
  summary: 'Gives the space of deleted rows back to the disk, in steps of a few milliseconds, while the service runs.',
  options: {
    ...where,
    whole: { type: 'boolean', describe: 'Writes the whole file again. The service must be stopped. For a store of an older version.' },
  },
  examples: ['millrace store compact', 'millrace store compact --whole'],
  async run(args, io) {
    const path = toPath(args, io);
    const stop = new AbortController();
    const release = io.onInterrupt(() => stop.abort());
    try {
      const report = args.flag('whole') ? compactWholeStore(path) : await compactStore(path, { signal: stop.signal });
      io.stdout.write(`${renderCompact(report)}\n`);
      return stop.signal.aborted ? 1 : 0;
    } finally {
      release();
    }
  },
};

const backup: Command = {
  name: 'store backup',
  summary: 'Writes a consistent copy of the store to a new file, and checks it. The service can go on.',
  positional: '<file>',
  options: where,
  examples: ['millrace store backup /backups/millrace-monday.db'],
  async run(args, io) {
    const [file = ''] = args.positionals;
    const { path, bytes, rollouts, schema } = backupStore(toPath(args, io), file);
    io.stdout.write(`${path}: ${toBytes(bytes)}, ${toCount(rollouts)} rollouts, schema ${schema}, checked\n`);
    return 0;
  },
};

const restore: Command = {
  name: 'store restore',
  summary: 'Replaces the store by a backup. The service must be stopped.',
  positional: '<file>',
  options: {
    ...where,
    replace: { type: 'boolean', describe: 'Also if the store has rollouts or batches; it is kept next to the new one.' },
  },
  examples: ['millrace store restore /backups/millrace-monday.db', 'millrace store restore /backups/millrace-monday.db --replace'],
  async run(args, io) {
    const [file = ''] = args.positionals;
    const suffix = `before-${new Date().toISOString().replace(/[:.]/g, '-')}`;
    const { path, bytes, rollouts, kept } = restoreStore(file, toPath(args, io), { replace: args.flag('replace'), suffix });
    io.stdout.write(`${path}: ${toBytes(bytes)}, ${toCount(rollouts)} rollouts\n`);
    if (kept !== undefined) io.stdout.write(`the store that was there: ${kept}\n`);
    return 0;
  },
};

export const storeCommands: CommandGroup = {
  name: 'store',
  summary: 'Shows what the store holds, gives space back to the disk, and makes and restores backups.',
  actions: { stats, compact, backup, restore },
  usual: 'stats',
};

function toPath(args: Arguments, io: Io): string {
  try {
    const address = toStoreAddress(toConfig(args, io));
    if (isPostgresAddress(address))
      throw new UsageError(`${hidePassword(address)} is a PostgreSQL store: use pg_dump and psql (docs/postgres.md)`);
    return address;
  } catch (error) {
    throw error instanceof UsageError ? error : new UsageError(messageOf(error));
  }
}

function renderCompact({ steps, freedBytes, longestLockMs, lockMs }: CompactReport): string {
  if (steps === 0) return 'nothing to give back';
  const held = `the write lock was held for ${longestLockMs.toFixed(1)} ms at most, ${lockMs.toFixed(0)} ms in all`;
  return `${toBytes(freedBytes)} given back in ${toCount(steps)} steps; ${held}`;
}

function renderStats(read: StoreStats, io: Io): string {
  const { path, schema, fileBytes, walBytes, reusableBytes, freeBytes, canCompact } = read;
  const toDate = (ms: number | undefined) => (ms === undefined ? '' : new Date(ms).toISOString().slice(0, 16).replace('T', ' '));
  const outcomes = read.outcomes.map(({ outcome, rollouts, trajectoryBytes, oldestMs, newestMs }) => ({
    cells: [outcome, toCount(rollouts), toBytes(trajectoryBytes), toDate(oldestMs), toDate(newestMs)],
  }));
  const tables = read.tables.map(({ name, rows, bytes }) => ({ cells: [name, toCount(rows), toBytes(bytes)] }));
  return [
    `${path}, schema ${schema}`,
    `file ${toBytes(fileBytes)}, log ${toBytes(walBytes)}, reusable ${toBytes(reusableBytes)}, free on its disk ${toBytes(freeBytes)}`,
    ...(canCompact ? [] : ['an older version made it: stop the service and run `millrace store compact --whole` once']),
    '',
    ...renderTable(['outcome', 'rollouts', 'trajectories', 'oldest', 'newest'], outcomes, toTableOptions(io, [1, 2])),
    '',
    ...renderTable(['table', 'rows', 'bytes'], tables, toTableOptions(io, [1, 2])),
    '',
  ].join('\n');
}
