// One thread of the SQLite store. It takes every call that waits and makes them one transaction, each call behind a savepoint
// of its own; answers leave only after the commit, so nothing is answered that a crash could undo.

import { closeSync, mkdirSync, openSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { type ErrorCode, messageOf, RolloutError } from '@millrace/protocol';
import { makeTables } from './engine/schema.ts';
import { type Connection, isBusy, openConnection, type Session, sqliteCode, whileBusy } from './engine/session.ts';
import { lastEventId } from './operations/events.ts';
import { reads, writes } from './operations.ts';

export interface ThreadOptions {
  readonly path: string;
  readonly role: 'writer' | 'reader';
}

export interface Call {
  readonly id: number;
  readonly name: string;
  readonly request: unknown;
  readonly nowMs: number;
}

export interface Answer {
  readonly id: number;
  readonly value?: unknown;
  readonly error?: { readonly code: ErrorCode; readonly message: string };
}

type Operation = (session: Session, request: unknown) => unknown;

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

  /** The file is opened with the first calls, and again with the next ones when that failed. */
  run(calls: readonly Call[]): Answer[] {
    try {
      this.#open ??= openFile(this.#options);
      const { connection, hint } = this.#open;
      const { answers, told } = whileBusy(() => this.#runTransaction(connection, calls));
      if (told && hint !== undefined) touch(hint);
      return answers;
    } catch (error) {
      return calls.map(({ id }) => ({ id, error: toWire(error, this.#options.path) }));
    }
  }

  close(): void {
    this.#open?.connection.db.close();
    if (this.#open?.hint !== undefined) closeSync(this.#open.hint);
  }

  #runTransaction(connection: Connection, calls: readonly Call[]): { answers: Answer[]; told: boolean } {
    const { db } = connection;
    db.exec(this.#options.role === 'writer' ? 'BEGIN IMMEDIATE' : 'BEGIN');
    try {
      const session = connection.at(0);
      const before = lastEventId(session);
      const answers = calls.map((call) => this.#runCall(connection, call));
      const told = lastEventId(session) !== before;
      db.exec('COMMIT');
      return { answers, told };
    } catch (error) {
      if (db.isTransaction) db.exec('ROLLBACK');
      throw error;
    }
  }

  #runCall(connection: Connection, call: Call): Answer {
    const session = connection.at(call.nowMs);
    session.run('SAVEPOINT one_call');
    try {
      const operation = this.#operations.get(call.name);
      if (!operation) throw new Error(`the ${this.#options.role} has no operation ${call.name}`);
      const value = operation(session, call.request);
      session.run('RELEASE one_call');
      return { id: call.id, value };
    } catch (error) {
      // When SQLite has undone the whole transaction, no neighbour's write stands either.
      if (isBusy(error) || !connection.db.isTransaction) throw error;
      session.run('ROLLBACK TO one_call');
      session.run('RELEASE one_call');
      return { id: call.id, error: toWire(error, this.#options.path) };
    }
  }
}

function serve(port: MessagePort, thread: StoreThread): void {
  port.on('message', (first: Call | 'close') => {
    const waiting = [first, ...drain(port)];
    const calls = waiting.filter((message) => message !== 'close');
    if (calls.length > 0) port.postMessage(thread.run(calls));
    if (calls.length === waiting.length) return;
    thread.close();
    port.close();
  });
}

function drain(port: MessagePort): (Call | 'close')[] {
  const messages: (Call | 'close')[] = [];
  for (let next = receiveMessageOnPort(port); next; next = receiveMessageOnPort(port)) messages.push(next.message);
  return messages;
}

function openFile({ path, role }: ThreadOptions): OpenFile {
  if (role === 'reader') return { connection: openConnection(path, { readOnly: true }) };
  mkdirSync(dirname(path), { recursive: true });
  // The file holds keys of backends: only its owner reads it. SQLite gives its side files the same mode.
  createFile(path);
  const connection = openConnection(path, { readOnly: false });
  try {
    whileBusy(() => makeTables(connection.at(0)));
    return { connection, hint: openSync(`${path}-hint`, 'a+', 0o600) };
  } catch (error) {
    connection.db.close();
    throw error;
  }
}

/**
 * Never opens a file that is there: closing any descriptor of it would drop the locks that this process holds through its other
 * connections, and another process could then take the WAL away.
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
  } catch {} // a hint may be lost: whoever waits looks again within a second
}

const codeNames: Record<number, string> = {
  5: 'SQLITE_BUSY',
  8: 'EROFS, SQLITE_READONLY',
  10: 'EIO, SQLITE_IOERR',
  11: 'SQLITE_CORRUPT',
  13: 'ENOSPC, SQLITE_FULL',
  14: 'SQLITE_CANTOPEN',
  26: 'SQLITE_NOTADB',
};

function toWire(error: unknown, path: string): { code: ErrorCode; message: string } {
  if (error instanceof RolloutError) return { code: error.code, message: error.message };
  const code = sqliteCode(error);
  const name = code === undefined ? '' : `${codeNames[code] ?? `SQLite code ${code}`}: `;
  return { code: 'internal', message: `store ${path}: ${name}${messageOf(error)}` };
}

if (parentPort) serve(parentPort, new StoreThread(workerData));
