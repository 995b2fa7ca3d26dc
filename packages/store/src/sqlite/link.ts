// The event loop's side of a store thread. Every call resolves or rejects, even if the thread dies.

import { Worker } from 'node:worker_threads';
import { findParts } from '@millrace/base/parts';
import { messageOf, RolloutError } from '@millrace/protocol';
import type { OperationLink, ReplyOf, TimedValue } from '../rows/operation-link.ts';
import type { Operations } from '../rows/operations.ts';
import { StoreError, StoreFault } from '../store-fault.ts';
import type { OperationCall, OperationReply, ThreadOptions, WireError } from './thread.ts';

interface PendingCall {
  resolve(reply: TimedValue<unknown>): void;
  reject(error: RolloutError): void;
}

export class ThreadLink<All extends Operations> implements OperationLink<All> {
  readonly #worker: Worker;
  readonly #pending = new Map<number, PendingCall>();
  readonly #exited: Promise<void>;
  readonly #onDeath: (error: RolloutError) => void;
  #nextId = 1;
  #ended: RolloutError | undefined;

  /** `onDeath` is called once if the thread ends before it is closed: from then on, every call rejects. */
  constructor(options: ThreadOptions, onDeath: (error: RolloutError) => void) {
    this.#onDeath = onDeath;
    this.#worker = new Worker(findParts().storeThread, { workerData: options, name: `store-${options.role}` });
    this.#worker.on('message', (replies: OperationReply[]) => this.#settle(replies));
    const exited = Promise.withResolvers<void>();
    this.#exited = exited.promise;
    const fail = (message: string) =>
      this.#fail(new StoreError(`store ${options.path}: the ${options.role} thread ${message}`, 'the store of the service is gone'));
    this.#worker.on('error', (error) => fail(`died: ${messageOf(error)}`));
    this.#worker.on('exit', (code) => {
      fail(`exited with code ${code}`);
      exited.resolve();
    });
  }

  async call<Name extends keyof All>(name: Name, request: Parameters<All[Name]>[1], nowMs: number): Promise<ReplyOf<All, Name>> {
    return (await this.timedCall(name, request, nowMs)).value;
  }

  timedCall<Name extends keyof All>(name: Name, request: Parameters<All[Name]>[1], nowMs: number): Promise<TimedValue<ReplyOf<All, Name>>> {
    if (this.#ended) return Promise.reject(this.#ended);
    const id = this.#nextId++;
    return new Promise((resolve, reject) => {
      this.#worker.postMessage({ id, name: String(name), request, nowMs } satisfies OperationCall);
      this.#pending.set(id, { resolve: (reply) => resolve(reply as TimedValue<ReplyOf<All, Name>>), reject });
    });
  }

  /** Calls made before it still complete. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#ended) {
      this.#ended = new RolloutError('not-running', 'the store is closed');
      this.#worker.postMessage('close');
    }
    await this.#exited;
  }

  #settle(replies: readonly OperationReply[]): void {
    for (const { id, value, error, lockMs = 0 } of replies) {
      const pending = this.#pending.get(id);
      this.#pending.delete(id);
      if (error) pending?.reject(toError(error));
      else pending?.resolve({ value, lockMs });
    }
  }

  #fail(error: RolloutError): void {
    const isDeath = this.#ended === undefined;
    this.#ended ??= error;
    if (isDeath) this.#onDeath(error);
    for (const pending of this.#pending.values()) pending.reject(error);
    this.#pending.clear();
  }
}

function toError({ kind, code, message, publicMessage }: WireError): RolloutError {
  if (kind === 'refusal') return new RolloutError(code, message);
  if (kind === 'bug') return new StoreError(message, publicMessage);
  return new StoreFault(message, publicMessage, { isDiskFull: kind === 'disk-full' });
}
