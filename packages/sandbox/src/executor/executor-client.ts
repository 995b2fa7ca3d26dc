// The worker's end of the executor wire. The agent runs on the executor's machine, so nothing that arrives is trusted: every reply is
// checked and limited in size, and the first invalid one ends the connection for good.

import type { Socket } from 'node:net';
import { systemClock } from '@millrace/base/clock';
import { type ExecutorCall, maxBodyBytes, maxHeadBytes, messageOf, RolloutError, readyFrame, replyFrame } from '@millrace/protocol';
import type { z } from 'zod';
import { LoopbackConnections } from '../loopback/connections.ts';
import { encodeFrame, type Frame, openFrameReader } from './wire/frames.ts';

interface CallSpec<T> {
  readonly method: Exclude<ExecutorCall['method'], 'cancel'>;
  readonly params: Record<string, unknown>;
  readonly body?: Buffer;
  /** Throws for an invalid reply. A schema that is made for each call would cost more than the call. */
  readonly reply: { parse(value: unknown): T };
  readonly maxBytes: number;
  /** An executor that has not replied by then is considered broken. */
  readonly deadlineMs: number;
  /** Ends the call as its own time limit does: it still replies. */
  readonly expire?: AbortSignal | undefined;
  readonly signal?: AbortSignal | undefined;
}

interface CallReply<T> {
  readonly result: T;
  readonly body: Buffer;
}

interface ExecutorClientOptions {
  /** Called at most once, with what went wrong. The owner then calls `close` with the error for the callers. */
  onBroken(why: string): void;
  /** Whether the sandbox itself used up what the kernel refused. Otherwise the machine has none left, and the agent is not to blame. */
  isOwnLimit(errno: string | undefined): boolean;
}

interface OpenCall {
  readonly take: (frame: Frame) => void;
  readonly reject: (error: Error) => void;
}

export class ExecutorClient {
  readonly #socket: Socket;
  readonly #onBroken: (why: string) => void;
  readonly #isOwnLimit: (errno: string | undefined) => boolean;
  readonly #pending = new Map<number, OpenCall>();
  readonly #ready = Promise.withResolvers<void>();
  /** Of programs in the sandbox, to services of the worker. */
  readonly connections = new LoopbackConnections({
    send: (method, params, body) => this.#socket.write(encodeFrame({ method, params }, body)),
  });
  #nextId = 1;
  #isReady = false;
  #isBroken = false;
  #closedBy: RolloutError | undefined;

  constructor(socket: Socket, { onBroken, isOwnLimit }: ExecutorClientOptions) {
    this.#socket = socket;
    this.#onBroken = onBroken;
    this.#isOwnLimit = isOwnLimit;
    const readFrames = openFrameReader({ headBytes: maxHeadBytes, bodyBytes: maxBodyBytes });
    socket.on('data', (chunk) => {
      try {
        for (const frame of readFrames(chunk)) this.#take(frame);
      } catch (error) {
        this.#break(`the executor sent an invalid frame: ${messageOf(error)}`);
      }
    });
    socket.on('error', () => {}); // 'close' follows
    socket.on('close', () => this.#break('the executor closed its connection'));
  }

  /** Resolves with the executor's first frame. Rejects if the client is closed before. */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  /** Throws the signal's reason as soon as it aborts; the executor then stops the call. */
  async call<T>(spec: CallSpec<T>): Promise<CallReply<T>> {
    spec.signal?.throwIfAborted();
    if (this.#closedBy) throw this.#closedBy;
    const id = this.#nextId++;
    const { promise, resolve, reject } = Promise.withResolvers<CallReply<T>>();
    this.#pending.set(id, { reject, take: (frame) => resolve(this.#check(spec, frame)) });
    this.#socket.write(encodeFrame({ id, method: spec.method, params: spec.params }, spec.body));
    const onAbort = () => {
      this.#socket.write(encodeFrame({ id, method: 'cancel', params: { call: id } }));
      reject(spec.signal?.reason);
    };
    const onExpire = () => this.#socket.write(encodeFrame({ id, method: 'cancel', params: { call: id, expired: true } }));
    spec.signal?.addEventListener('abort', onAbort, { once: true });
    spec.expire?.addEventListener('abort', onExpire, { once: true });
    const cancelDeadline = systemClock.after(spec.deadlineMs, () => this.#break(`no reply to ${spec.method} within ${spec.deadlineMs} ms`));
    try {
      return await promise;
    } finally {
      cancelDeadline();
      spec.signal?.removeEventListener('abort', onAbort);
      spec.expire?.removeEventListener('abort', onExpire);
    }
  }

  /** Pending and later calls throw the error. */
  close(error: RolloutError): void {
    if (this.#closedBy) return;
    this.#closedBy = error;
    this.#socket.destroy();
    this.#ready.promise.catch(() => {}); // handled by the code that waits for it, if any
    this.#ready.reject(error);
    for (const { reject } of this.#pending.values()) reject(error);
    this.connections.close(error);
    this.#pending.clear();
  }

  #take(frame: Frame): void {
    if (this.#isBroken) return;
    if (!this.#isReady) {
      readyFrame.parse(frame.head);
      this.#isReady = true;
      this.#ready.resolve();
      return;
    }
    if (typeof frame.head === 'object' && frame.head !== null && 'event' in frame.head) {
      this.connections.take(frame.head, frame.body);
      return;
    }
    const { id } = replyFrame.parse(frame.head);
    const pending = this.#pending.get(id);
    if (!pending) throw new Error(`a reply to call ${id}, which is not open`);
    try {
      pending.take(frame);
    } catch (error) {
      if (!(error instanceof RolloutError)) throw error;
      pending.reject(error);
    }
    this.#pending.delete(id);
  }

  /** Throws a RolloutError for an error that the executor reports, and any other error for an invalid reply. */
  #check<T>(spec: CallSpec<T>, frame: Frame): CallReply<T> {
    const { result, error } = replyFrame.parse(frame.head);
    if (error) throw this.#toError(`${spec.method}: ${error.message.slice(0, 1000)}`, error);
    if (frame.body.length > spec.maxBytes) throw new Error(`${frame.body.length} bytes for ${spec.method}, more than ${spec.maxBytes}`);
    return { result: spec.reply.parse(result), body: frame.body };
  }

  #toError(message: string, { kind, errno }: ExecutorFault): RolloutError {
    if (kind !== 'limit' || this.#isOwnLimit(errno)) return new RolloutError(errorCodes[kind], message);
    return new RolloutError('sandbox-failed', `${message}: this machine has none left, and the sandbox is within its limits`);
  }

  #break(why: string): void {
    if (this.#isBroken || this.#closedBy) return;
    this.#isBroken = true;
    this.#socket.destroy();
    this.#onBroken(why);
  }
}

type ExecutorFault = NonNullable<z.infer<typeof replyFrame>['error']>;

const errorCodes = {
  'not-found': 'not-found',
  'too-large': 'artifact-too-large',
  'bad-call': 'sandbox-refused',
  failed: 'sandbox-refused',
  limit: 'sandbox-limit',
} as const;
