// One thread of the SQLite store. It runs all pending calls in one transaction, each behind its own savepoint. Replies are sent
// after the commit, so nothing is acknowledged that a crash could undo.

import { closeSync, mkdirSync, openSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { systemClock } from '@millrace/base/clock';
import type { ErrorCode } from '@millrace/protocol';
import { messageOf, RolloutError } from '@millrace/protocol/plain';
import { reads, writes } from '../rows/operations.ts';
import type { Transaction } from '../transaction.ts';
import { type Connection, isBusy, openConnection, readLastEventId, sqliteCode, whileBusy, whileBusySync } from './engine/connection.ts';
import { makeTables } from './engine/schema.ts';

export interface ThreadOptions {
  readonly path: string;
  readonly role: 'writer' | 'reader';
  /** Calls take place at the time of this thread's clock, once their transaction is open; otherwise at the caller's time. */
  readonly hasOwnTime: boolean;
}

export interface OperationCall {
  readonly id: number;
  readonly name: string;
  readonly request: unknown;
  readonly nowMs: number;
}

/**
 * - refusal: the operation refused the call
 * - fault: the storage failed, and the same call may succeed later
 * - disk-full: a fault, because the disk has no space left
 * - bug: anything else
 */
export interface WireError {
  readonly kind: 'refusal' | 'fault' | 'disk-full' | 'bug';
  readonly code: ErrorCode;
  readonly message: string;
  /** Without the path of the file. */
  readonly publicMessage: string;
}

export interface OperationReply {
  readonly id: number;
  readonly value?: unknown;
  readonly error?: WireError;
  /** How long its transaction held the lock, with the commit. */
  readonly lockMs?: number;
}

type Operation = (transaction: Transaction, request: unknown) => Promise<unknown>;

interface OpenFile {
  readonly connection: Connection;
  /** The descriptor of the hint file; only the writer has one. */
  readonly hint?: number;
}

class StoreThread {
  readonly #options: ThreadOptions;
  readonly #operations: ReadonlyMap<string, Operation>;
  #open: OpenFile | undefined;

  constructor(options: ThreadOptions) {
    this.#options = options;
    this.#operations = new Map(Object.entries(options.role === 'writer' ? writes : reads) as [string, Operation][]);
  }

  /** Opens the file on the first calls; if that fails, the next calls try again. */
  async run(calls: readonly OperationCall[]): Promise<OperationReply[]> {
    try {
      this.#open ??= openFile(this.#options);
      const { connection, hint } = this.#open;
      const { replies, hasEvents } = await whileBusy(() => this.#runTransaction(connection, calls));
      if (hasEvents && hint !== undefined) touch(hint);
      return replies;
    } catch (error) {
      return calls.map(({ id }) => ({ id, error: toWire(error, this.#options.path) }));
    }
  }

  close(): void {
    this.#open?.connection.db.close();
    if (this.#open?.hint !== undefined) closeSync(this.#open.hint);
  }

  async #runTransaction(
    connection: Connection,
    calls: readonly OperationCall[],
  ): Promise<{ replies: OperationReply[]; hasEvents: boolean }> {
    const { db, statements } = connection;
    db.exec(this.#options.role === 'writer' ? 'BEGIN IMMEDIATE' : 'BEGIN');
    try {
      const before = readLastEventId(statements);
      const startedAtMs = systemClock.now();
      const lockedAt = systemClock.monotonic();
      const timeOf = ({ nowMs }: OperationCall) => (this.#options.hasOwnTime ? startedAtMs : nowMs);
      const replies = await Array.fromAsync(calls, (call) => this.#runCall(connection, { call, nowMs: timeOf(call) }));
      const hasEvents = readLastEventId(statements) !== before;
      connection.commit();
      const lockMs = systemClock.monotonic() - lockedAt;
      return { replies: replies.map((reply) => ({ ...reply, lockMs })), hasEvents };
    } catch (error) {
      connection.rollBack();
      throw error;
    }
  }

  async #runCall(connection: Connection, { call, nowMs }: { call: OperationCall; nowMs: number }): Promise<OperationReply> {
    const { statements, counts } = connection;
    const { mark } = counts;
    statements.run('SAVEPOINT one_call');
    try {
      const operation = this.#operations.get(call.name);
      if (!operation) throw new Error(`the ${this.#options.role} has no operation ${call.name}`);
      const value = await operation(connection.at(nowMs), call.request);
      statements.run('RELEASE one_call');
      return { id: call.id, value };
    } catch (error) {
      // If SQLite rolled back the whole transaction, the writes of the other calls are gone too.
      if (isBusy(error) || !connection.db.isTransaction) throw error;
      statements.run('ROLLBACK TO one_call');
      statements.run('RELEASE one_call');
      counts.undo(mark);
      return { id: call.id, error: toWire(error, this.#options.path) };
    }
  }
}

function serve(port: MessagePort, thread: StoreThread): void {
  let running = Promise.resolve();
  port.on('message', (first: OperationCall | 'close') => {
    running = running.then(async () => {
      const messages = [first, ...drain(port)];
      const calls = messages.filter((message) => message !== 'close');
      if (calls.length > 0) port.postMessage(await thread.run(calls));
      if (calls.length === messages.length) return;
      thread.close();
      port.close();
    });
  });
}

function drain(port: MessagePort): (OperationCall | 'close')[] {
  const messages: (OperationCall | 'close')[] = [];
  for (let next = receiveMessageOnPort(port); next; next = receiveMessageOnPort(port)) messages.push(next.message);
  return messages;
}

function openFile({ path, role }: ThreadOptions): OpenFile {
  if (role === 'reader') return { connection: openConnection(path, { readOnly: true }) };
  mkdirSync(dirname(path), { recursive: true });
  // The file holds backend keys, so only its owner can read it. SQLite gives its side files the same mode.
  createFile(path);
  const connection = openConnection(path, { readOnly: false });
  try {
    whileBusySync(() => makeTables(connection.statements));
    return { connection, hint: openSync(`${path}-hint`, 'a+', 0o600) };
  } catch (error) {
    connection.db.close();
    throw error;
  }
}

/**
 * Never opens an existing file: closing any descriptor of it would drop the locks that this process holds through its other
 * connections, and another process could then remove the WAL.
 */
function createFile(path: string): void {
  try {
    closeSync(openSync(path, 'ax', 0o600));
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
  }
}

function touch(hint: number): void {
  try {
    writeSync(hint, '.', 0);
  } catch {} // a hint may be lost: readers poll once a second
}

const fullCode = 13;

/** SQLite's codes for storage that fails. Any other code is about the data or the statement. */
const faultNames: Record<number, string> = {
  5: 'SQLITE_BUSY',
  6: 'SQLITE_LOCKED',
  7: 'SQLITE_NOMEM',
  8: 'EROFS, SQLITE_READONLY',
  10: 'EIO, SQLITE_IOERR',
  11: 'SQLITE_CORRUPT',
  [fullCode]: 'ENOSPC, SQLITE_FULL',
  14: 'SQLITE_CANTOPEN',
  26: 'SQLITE_NOTADB',
};

function toWire(error: unknown, path: string): WireError {
  if (error instanceof RolloutError) return { kind: 'refusal', code: error.code, message: error.message, publicMessage: error.message };
  const code = sqliteCode(error);
  const fault = code === undefined ? undefined : faultNames[code];
  const name = code === undefined ? '' : `${fault ?? `SQLite code ${code}`}: `;
  const isFault = fault !== undefined || (error instanceof Error && 'syscall' in error);
  const kind = code === fullCode ? 'disk-full' : isFault ? 'fault' : 'bug';
  const publicMessage = isFault
    ? `the store failed: ${fault ?? 'its file cannot be used'}`
    : 'the store failed; see the log of the service';
  return { kind, code: 'internal', message: `store ${path}: ${name}${messageOf(error)}`, publicMessage };
}

if (parentPort) serve(parentPort, new StoreThread(workerData));
