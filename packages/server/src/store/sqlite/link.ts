// The event loop's end of a store thread: calls go out, and each is answered or fails, also when the thread dies.

import { Worker } from 'node:worker_threads';
import { messageOf, RolloutError } from '@millrace/protocol';
import { findParts } from '../../base/parts.ts';
import type { Session } from './engine/session.ts';
import type { Answer, Call, ThreadOptions } from './thread.ts';

type Operations<Names extends string> = Record<Names, (session: Session, request: never) => unknown>;

interface Waiting {
  resolve(value: unknown): void;
  reject(error: RolloutError): void;
}

export class ThreadLink<Names extends string, All extends Operations<Names>> implements AsyncDisposable {
  readonly #worker: Worker;
  readonly #waiting = new Map<number, Waiting>();
  readonly #exited: Promise<void>;
  #nextId = 1;
  #ended: RolloutError | undefined;

  constructor(options: ThreadOptions) {
    this.#worker = new Worker(findParts().storeThread, { workerData: options, name: `store-${options.role}` });
    this.#worker.on('message', (answers: Answer[]) => this.#settle(answers));
    const exited = Promise.withResolvers<void>();
    this.#exited = exited.promise;
    const fail = (message: string) =>
      this.#fail(new RolloutError('internal', `store ${options.path}: its ${options.role} thread ${message}`));
    this.#worker.on('error', (error) => fail(`died: ${messageOf(error)}`));
    this.#worker.on('exit', (code) => {
      fail(`ended with ${code}`);
      exited.resolve();
    });
  }

  call<Name extends Names>(name: Name, request: Parameters<All[Name]>[1], nowMs: number): Promise<ReturnType<All[Name]>> {
    if (this.#ended) return Promise.reject(this.#ended);
    const id = this.#nextId++;
    return new Promise((resolve, reject) => {
      this.#worker.postMessage({ id, name, request, nowMs } satisfies Call);
      this.#waiting.set(id, { resolve, reject });
    });
  }

  /** What was called before is still done and answered. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#ended) {
      this.#ended = new RolloutError('not-running', 'the store is closed');
      this.#worker.postMessage('close');
    }
    await this.#exited;
  }

  #settle(answers: readonly Answer[]): void {
    for (const { id, value, error } of answers) {
      const waiting = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (error) waiting?.reject(new RolloutError(error.code, error.message));
      else waiting?.resolve(value);
    }
  }

  #fail(error: RolloutError): void {
    this.#ended ??= error;
    for (const waiting of this.#waiting.values()) waiting.reject(error);
    this.#waiting.clear();
  }
}
