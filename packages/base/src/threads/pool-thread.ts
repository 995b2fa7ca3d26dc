// One thread of a pool: it runs one call at a time, and ends when the call has used up its CPU time or its memory. While it is idle, it
// does not keep the process alive.

import { isMarkedAsUntransferable, Worker } from 'node:worker_threads';
import { messageOf, RolloutError } from '@millrace/protocol/plain';
import type { Clock } from '../clock.ts';
import type { FunctionCall, FunctionReply } from './serve-functions.ts';

export type ThreadOutcome<Value> =
  | { readonly kind: 'value'; readonly value: Value }
  /** The arguments alone caused it: neither the load of the machine nor other calls count. */
  | { readonly kind: 'exhausted'; readonly by: Exhausted };

type Exhausted = 'cpu' | 'memory' | 'stack';

export interface ThreadCall {
  /** CPU time of the thread; waiting for a core does not count. */
  readonly cpuMs: number;
  /** Buffers that move to the thread instead of being copied; the caller cannot use them afterwards. */
  readonly transfer?: readonly Uint8Array[];
  readonly signal?: AbortSignal | undefined;
}

interface PoolThreadOptions {
  readonly entry: URL;
  readonly name: string;
  readonly heapMiB: number;
  readonly clock: Clock;
}

interface ThreadCallEnd {
  resolve(outcome: ThreadOutcome<unknown>): void;
  reject(error: unknown): void;
}

/** How long after a check of the CPU time the next one is, at least. */
const leastCheckMs = 10;
/** Less than the 16 MiB that Node adds to a full heap: a thread that moves more than that at once aborts the whole process. */
const youngMiB = 12;
const stackMiB = 4;

export class PoolThread {
  readonly #name: string;
  readonly #clock: Clock;
  readonly #worker: Worker;
  readonly #ready = Promise.withResolvers<void>();
  #call: ThreadCallEnd | undefined;
  #cpuMs = 0;
  #hasEnded = false;

  constructor({ entry, name, heapMiB, clock }: PoolThreadOptions) {
    this.#name = name;
    this.#clock = clock;
    const resourceLimits = { maxOldGenerationSizeMb: heapMiB, maxYoungGenerationSizeMb: youngMiB, stackSizeMb: stackMiB };
    this.#worker = new Worker(entry, { name, resourceLimits, execArgv: [] });
    this.#worker.on('message', (reply: FunctionReply) => this.#receive(reply));
    this.#worker.on('error', (error) => this.#fail(error));
    this.#worker.on('exit', (code) => this.#fail(new Error(`it exited with code ${code}`)));
    this.#ready.promise.catch(() => {}); // the call that waits for it reports it
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** Rejects with what the function throws. Throws `internal` if the thread does not start or ends by itself. */
  async run(name: string, args: readonly unknown[], { cpuMs, transfer = [], signal }: ThreadCall): Promise<ThreadOutcome<unknown>> {
    this.#worker.ref();
    const ended = Promise.withResolvers<ThreadOutcome<unknown>>();
    const abort = () => {
      ended.reject(signal?.reason);
      void this.end();
    };
    signal?.addEventListener('abort', abort, { once: true });
    let stopWatch = () => {};
    try {
      signal?.throwIfAborted();
      await Promise.race([this.#ready.promise, ended.promise]);
      this.#call = ended;
      this.#worker.postMessage({ name, args } satisfies FunctionCall, buffersOf(transfer));
      stopWatch = this.#watch(this.#cpuMs + cpuMs);
      return await ended.promise;
    } finally {
      stopWatch();
      signal?.removeEventListener('abort', abort);
      this.#call = undefined;
      this.#worker.unref();
    }
  }

  /** A thread inside a long function of the engine itself ends when that returns; it takes no further calls. */
  async end(): Promise<void> {
    this.#hasEnded = true;
    await this.#worker.terminate();
  }

  /** Ends the call when the thread's own CPU time reaches the limit. That is never earlier than as much wall time. */
  #watch(limitMs: number): () => void {
    let [isOver, stop] = [false, () => {}];
    const checkAfter = (ms: number) => {
      stop = this.#clock.after(ms, check);
    };
    const check = async () => {
      const usage = await this.#worker.cpuUsage().catch(() => undefined); // it has ended
      if (isOver || usage === undefined) return;
      const leftMs = limitMs - (usage.user + usage.system) / 1000;
      if (leftMs > 0) checkAfter(Math.max(leastCheckMs, leftMs));
      else {
        this.#call?.resolve({ kind: 'exhausted', by: 'cpu' });
        void this.end();
      }
    };
    checkAfter(Math.max(leastCheckMs, limitMs - this.#cpuMs));
    return () => {
      isOver = true;
      stop();
    };
  }

  #receive(reply: FunctionReply): void {
    this.#cpuMs = reply.cpuMs;
    if (reply.kind === 'ready') this.#ready.resolve();
    else if (reply.kind === 'error') this.#call?.reject(reply.error);
    else this.#call?.resolve(reply.kind === 'value' ? { kind: 'value', value: reply.value } : { kind: 'exhausted', by: reply.by });
  }

  #fail(error: Error): void {
    this.#hasEnded = true;
    const isMemory = 'code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY';
    if (isMemory) this.#call?.resolve({ kind: 'exhausted', by: 'memory' });
    const fault = new RolloutError('internal', `a thread of ${this.#name} ended: ${messageOf(error)}`, { cause: error });
    this.#call?.reject(fault);
    this.#ready.reject(fault);
  }
}

/** Node shares small buffers, and marks what it shares. */
function buffersOf(views: readonly Uint8Array[]): ArrayBuffer[] {
  const all = new Set(views.map(({ buffer }) => buffer));
  return [...all].filter((buffer): buffer is ArrayBuffer => buffer instanceof ArrayBuffer && !isMarkedAsUntransferable(buffer));
}
