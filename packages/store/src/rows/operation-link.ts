// How a store reaches its operations: in a thread of SQLite, or through sessions of PostgreSQL.

import type { Operations } from './operations.ts';

/** Runs operations by name, each in a transaction. Every call resolves or rejects. Closing it lets the calls made before complete. */
export interface OperationLink<All extends Operations> extends AsyncDisposable {
  call<Name extends keyof All>(name: Name, request: Parameters<All[Name]>[1], nowMs: number): Promise<ReplyOf<All, Name>>;
  timedCall<Name extends keyof All>(name: Name, request: Parameters<All[Name]>[1], nowMs: number): Promise<TimedValue<ReplyOf<All, Name>>>;
}

export type ReplyOf<All extends Operations, Name extends keyof All> = Awaited<ReturnType<All[Name]>>;

/** The value of a call, and how long its transaction held its locks. */
export interface TimedValue<Value> {
  readonly value: Value;
  readonly lockMs: number;
}
