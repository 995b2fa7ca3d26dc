// Runs operations in transactions on one connection, and opens another when it breaks. Calls that every worker makes all the time run in
// sets. All others that wait share the next transaction, each behind its own savepoint, so the cost of a commit is divided among them.
// Replies come after the commit.

import { sleep, systemClock } from '@millrace/base/clock';
import type { Log } from '@millrace/base/log';
import { messageOf, RolloutError } from '@millrace/protocol';
import type { StoreObserver } from '../rows/observe-link.ts';
import type { OperationLink, ReplyOf, TimedValue } from '../rows/operation-link.ts';
import type { Operations } from '../rows/operations.ts';
import { isTogetherCall, pickTogether, runTogether } from './calls/together.ts';
import { findSetKey, runSet } from './calls/worker-calls.ts';
import { ConnectionLost, isCollision, isStalePlan, toStoreError, toUnknownOutcome } from './engine/faults.ts';
import { PostgresTransaction } from './engine/postgres-transaction.ts';
import type { Session } from './engine/session.ts';
import type { SessionKeeper } from './session-keeper.ts';

interface LinkOptions<All extends Operations> {
  readonly role: 'writer' | 'reader';
  readonly operations: All;
  readonly sessions: SessionKeeper;
  /** Transactions take place at the time of the database; otherwise at the caller's time. */
  readonly hasOwnTime: boolean;
  readonly channel: string;
  readonly log: Log;
  readonly observer?: StoreObserver;
}

interface WaitingCall {
  readonly name: string;
  readonly request: unknown;
  readonly nowMs: number;
  resolve(reply: TimedValue<unknown>): void;
  reject(error: RolloutError): void;
}

type CallOutcome = { readonly value: unknown } | { readonly error: unknown };
type PostgresOperation = (transaction: PostgresTransaction, request: never) => Promise<unknown>;

interface OpenTransaction {
  readonly transaction: PostgresTransaction;
  readonly transactionId: string;
  readonly begunAtMs: number;
  readonly maySoften: boolean;
}

/**
 * What a crash of the database may take back, with what was committed since the last durable commit: workers renew and report again, turns
 * are telemetry, and a move whose predecessor was lost is made from the stage before (`mayMissMoves`).
 */
const soft: ReadonlySet<string> = new Set(['renew', 'reportGate', 'noteTraffic', 'appendEvents', 'move', 'place']);

/** What its caller says about moves: see `Repeat`. */
function isRepeated(request: unknown): boolean {
  return typeof request === 'object' && request !== null && 'isRepeated' in request && request.isRepeated === true;
}

const mostCalls = 64;
const mostInSet = 1_000;
/** Transactions that collide are repeated, from the third time on one call at a time, up to this often and this long. */
const [mostCollisions, collisionsTogether, longestCollisionMs] = [12, 2, 30_000];

export class PostgresLink<All extends Operations> implements OperationLink<All> {
  readonly #options: LinkOptions<All>;
  readonly #operations: ReadonlyMap<string, PostgresOperation>;
  readonly #waiting: WaitingCall[] = [];
  #running: Promise<void> | undefined;
  #isClosed = false;

  constructor(options: LinkOptions<All>) {
    this.#options = options;
    this.#operations = new Map<string, PostgresOperation>(Object.entries(options.operations));
  }

  async call<Name extends keyof All>(name: Name, request: Parameters<All[Name]>[1], nowMs: number): Promise<ReplyOf<All, Name>> {
    return (await this.timedCall(name, request, nowMs)).value;
  }

  timedCall<Name extends keyof All>(name: Name, request: Parameters<All[Name]>[1], nowMs: number): Promise<TimedValue<ReplyOf<All, Name>>> {
    if (this.#isClosed) return Promise.reject(new RolloutError('not-running', 'the store is closed'));
    return new Promise((resolve, reject) => {
      const settle = (reply: TimedValue<unknown>) => resolve(reply as TimedValue<ReplyOf<All, Name>>);
      this.#waiting.push({ name: String(name), request, nowMs, resolve: settle, reject });
      this.#running ??= this.#runAll();
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    await this.#running;
    await this.#options.sessions.close();
  }

  /** Starts in a later turn, so that calls made together share the first transaction too. */
  async #runAll(): Promise<void> {
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      const set = this.#takeSet();
      if (set.length > 0) await this.#runTogether(await this.#runSet(set));
      else await this.#runTogether(this.#takeCalls());
    }
    this.#running = undefined;
  }

  /** What runs in one statement for each kind, if the call that waits longest does: all such calls, one for each row that they write. */
  #takeSet(): WaitingCall[] {
    const [oldest] = this.#waiting;
    if (this.#options.role !== 'writer' || !oldest || findSetKey(oldest) === undefined) return [];
    const [set, keys, others]: [WaitingCall[], Set<string>, WaitingCall[]] = [[], new Set(), []];
    for (const call of this.#waiting.splice(0)) {
      const key = findSetKey(call);
      const isNext =
        key !== undefined && !keys.has(key) && set.length < mostInSet && (this.#options.hasOwnTime || call.nowMs === oldest.nowMs);
      if (isNext) keys.add(key);
      (isNext ? set : others).push(call);
    }
    this.#waiting.push(...others);
    return set;
  }

  /** Those that wait longest, and all that run together with others. */
  #takeCalls(): WaitingCall[] {
    if (this.#options.role !== 'writer') return this.#waiting.splice(0, mostCalls);
    const [taken, others]: [WaitingCall[], WaitingCall[]] = [[], []];
    let alone = 0;
    for (const call of this.#waiting.splice(0)) {
      const isTogether = isTogetherCall(call.name);
      const isTaken = taken.length < mostInSet && (isTogether || alone < mostCalls);
      if (isTaken && !isTogether) alone += 1;
      (isTaken ? taken : others).push(call);
    }
    this.#waiting.push(...others);
    return taken;
  }

  /** Returns the calls that have to run in a transaction of their own. */
  async #runSet(set: readonly WaitingCall[]): Promise<readonly WaitingCall[]> {
    const { sessions, channel, hasOwnTime, observer } = this.#options;
    observer?.onTick(set.length);
    const startedAt = systemClock.monotonic();
    try {
      const replies = await sessions.use((session) =>
        runSet(session, set, { channel, nowMs: hasOwnTime ? undefined : set[0]?.nowMs, isRepeated: sessions.hasLost }),
      );
      const lockMs = systemClock.monotonic() - startedAt;
      for (const [index, call] of set.entries()) if (replies.has(index)) this.#settle(call, { value: replies.get(index) }, lockMs);
      return set.filter((_, index) => !replies.has(index));
    } catch (error) {
      if (error instanceof ConnectionLost) this.#reject(set, error);
      else this.#options.log.info('store-collision', { error: messageOf(error), calls: [...new Set(set.map(({ name }) => name))] });
      return error instanceof ConnectionLost ? [] : set;
    }
  }

  async #runTogether(calls: readonly WaitingCall[], collisions = 0, firstAt = systemClock.monotonic()): Promise<void> {
    if (calls.length === 0) return;
    const { sessions } = this.#options;
    const startedAt = systemClock.monotonic();
    try {
      const outcomes = await sessions.use((session) => this.#transact(session, calls));
      const lockMs = systemClock.monotonic() - startedAt;
      for (const [index, call] of calls.entries()) this.#settle(call, outcomes[index] ?? { error: new Error('no outcome') }, lockMs);
    } catch (error) {
      if (isStalePlan(error)) await sessions.close();
      const mayRepeat = isCollision(error) || isStalePlan(error);
      if (!mayRepeat || collisions >= mostCollisions || systemClock.monotonic() - firstAt > longestCollisionMs) {
        this.#reject(calls, error);
        return;
      }
      if (collisions === collisionsTogether)
        this.#options.log.info('store-collision', { error: messageOf(error), calls: calls.map(({ name }) => name) });
      await sleep(Math.random() * 2 ** collisions);
      if (collisions < collisionsTogether) await this.#runTogether(calls, collisions + 1, firstAt);
      else for (const call of calls) await this.#runTogether([call], collisions + 1, firstAt);
    }
  }

  #reject(calls: readonly WaitingCall[], error: unknown): void {
    for (const call of calls) call.reject(toStoreError(error, this.#options.sessions.where));
  }

  #settle(call: WaitingCall, outcome: CallOutcome, lockMs: number): void {
    if ('error' in outcome) call.reject(toStoreError(outcome.error, this.#options.sessions.where));
    else call.resolve({ value: outcome.value, lockMs });
  }

  async #transact(session: Session, calls: readonly WaitingCall[]): Promise<CallOutcome[]> {
    const { role, sessions, hasOwnTime, observer } = this.#options;
    if (role === 'writer') observer?.onTick(calls.length);
    const { nowMs, transactionId } = await sessions.begin(session, role);
    const transaction = new PostgresTransaction(session, { nowMs, mayMissMoves: sessions.hasLost });
    const outcomes = new Map<WaitingCall, CallOutcome>();
    try {
      if (role === 'writer') await this.#runAllTogether(session, transaction, { calls, outcomes });
      for (const call of calls) {
        if (outcomes.has(call)) continue;
        if (!hasOwnTime) transaction.nowMs = call.nowMs;
        outcomes.set(call, await this.#runCall(session, transaction, { call, isAlone: calls.length === 1 }));
      }
    } catch (error) {
      if (!session.isBroken) await session.script('ROLLBACK');
      throw error;
    }
    if (role === 'reader') await session.script('COMMIT');
    else if (calls.length === 1 && calls.some((call) => 'error' in (outcomes.get(call) ?? {}))) await session.script('ROLLBACK');
    else
      await this.#commit(session, { transaction, transactionId, begunAtMs: nowMs, maySoften: calls.every(({ name }) => soft.has(name)) });
    return calls.map((call) => outcomes.get(call) ?? { error: new Error('no outcome') });
  }

  /** Each kind of call that can, as a few statements for all. If they fail, each call runs alone. */
  async #runAllTogether(
    session: Session,
    transaction: PostgresTransaction,
    { calls, outcomes }: { readonly calls: readonly WaitingCall[]; readonly outcomes: Map<WaitingCall, CallOutcome> },
  ): Promise<void> {
    const [first] = calls;
    if (!this.#options.hasOwnTime && first) transaction.nowMs = first.nowMs;
    const able = calls.filter(({ name, nowMs }) => isTogetherCall(name) && (this.#options.hasOwnTime || nowMs === first?.nowMs));
    for (const name of new Set(able.map((call) => call.name))) {
      const some = pickTogether(able.filter((call) => call.name === name));
      if (some.length < 2) continue;
      const work = () =>
        runTogether(
          transaction,
          name,
          some.map(({ request }) => request),
        );
      const reply = await this.#guard(session, transaction, { work, isAlone: false });
      if ('error' in reply) continue;
      for (const [index, call] of some.entries())
        if (!reply.value.alone.has(index)) outcomes.set(call, { value: reply.value.values[index] });
    }
  }

  async #runCall(
    session: Session,
    transaction: PostgresTransaction,
    { call, isAlone }: { readonly call: WaitingCall; readonly isAlone: boolean },
  ): Promise<CallOutcome> {
    transaction.mayMissMoves = this.#options.sessions.hasLost || isRepeated(call.request);
    const operation = this.#operations.get(call.name);
    if (!operation) throw new Error(`the ${this.#options.role} has no operation ${call.name}`);
    return await this.#guard(session, transaction, { work: () => operation(transaction, call.request as never), isAlone });
  }

  /** Throws only what ends the whole transaction. The savepoint of the work before is replaced. */
  async #guard<T>(
    session: Session,
    transaction: PostgresTransaction,
    { work, isAlone }: { readonly work: () => Promise<T>; readonly isAlone: boolean },
  ): Promise<{ readonly value: T } | { readonly error: unknown }> {
    const mark = transaction.mark;
    if (!isAlone) await session.script(`${transaction.hasSavepoint ? 'RELEASE one_call; ' : ''}SAVEPOINT one_call`);
    transaction.hasSavepoint = !isAlone;
    try {
      return { value: await work() };
    } catch (error) {
      if (error instanceof ConnectionLost || isCollision(error) || isStalePlan(error)) throw error;
      if (!isAlone) await session.script('ROLLBACK TO one_call');
      transaction.undo(mark);
      return { error };
    }
  }

  /** If the reply to the commit is lost, the database says later what became of the transaction. Throws if it was not committed. */
  async #commit(session: Session, { transaction, transactionId, begunAtMs, maySoften }: OpenTransaction): Promise<void> {
    const { sessions, channel, log } = this.#options;
    try {
      await session.script(transaction.toCommit(channel, { maySoften }));
    } catch (error) {
      if (!(error instanceof ConnectionLost)) {
        await session.script('ROLLBACK').catch(() => {}); // the connection broke meanwhile, and with it the transaction
        throw error;
      }
      const status = await sessions.findOutcome(transactionId, begunAtMs).catch(() => undefined);
      log.warn('store-commit-reply-lost', { transactionId, status: status ?? 'unknown' });
      if (status === undefined) throw toUnknownOutcome(sessions.where);
      if (status === 'aborted') throw error;
    }
  }
}
