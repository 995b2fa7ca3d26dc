// The process of a scenario in Python, as the worker calls it. It is started with the first call and again after it died; calls that were
// running then throw `scenario-died`, which blames the scenario and can be retried; a plain error if one rollout has the process for itself.

import { systemClock } from '@millrace/base/clock';
import { type Log, silentLog } from '@millrace/base/log';
import { definedOf, type Failure, messageOf, RolloutError } from '@millrace/protocol';
import { ScenarioError } from '../scenario-error.ts';
import { PythonProcess, type PythonTimes } from './python-process.ts';
import { type FromPython, type PythonDescription, PythonError, type PythonFailure, type PythonFunction } from './wire.ts';

export interface SidecarOptions extends Partial<PythonTimes> {
  /** Silent if absent. */
  readonly log?: Log;
  /** After this many calls that cannot be stopped, the process is replaced. */
  readonly maxStuck?: number;
  /** One rollout has the process for itself; `last`: also a kill from outside is its doing. */
  readonly apart?: 'apart' | 'last';
}

interface PythonCall {
  readonly context: Readonly<Record<string, unknown>>;
  /** Which rollout of the process; absent for calls that belong to none. */
  readonly rollout?: RolloutHandle;
  readonly signal?: AbortSignal;
  /** Answers what the function asks the worker for. What it throws is raised in Python. */
  onAsk?(method: string, args: Readonly<Record<string, unknown>>): Promise<unknown>;
}

/** A rollout whose state is in one process. */
export interface RolloutHandle {
  readonly number: number;
  /** The process that knows it; set by its first call. */
  process?: PythonProcess;
}

interface RunningCall extends PythonCall {
  readonly name: PythonFunction;
  readonly process: PythonProcess;
  /** Errors of requests, by their number, so that one that Python does not handle keeps its code. */
  readonly askErrors: Map<number, unknown>;
  resolve(value: unknown): void;
  reject(error: unknown): void;
  stopTimer?: () => void;
}

const defaults = { startMs: 120_000, hungMs: 30_000, maxStuck: 32 };
/** What is called before the agent has acted. */
const early: ReadonlySet<PythonFunction> = new Set(['sandbox', 'prepare_key', 'prepare', 'init']);
const before = 'it was started again before';
/** How long a cancelled call may take to end before it counts as stuck. */
const cancelMs = 10_000;

export class Sidecar {
  readonly #file: string;
  readonly #options: typeof defaults & Pick<SidecarOptions, 'apart'>;
  readonly #log: Log;
  readonly #calls = new Map<number, RunningCall>();
  readonly #stuck = new Set<number>();
  #process: PythonProcess | undefined;
  #next = 1;

  constructor(file: string, options: SidecarOptions = {}) {
    this.#file = file;
    this.#options = { ...defaults, ...definedOf({ ...options, log: undefined }) };
    this.#log = options.log ?? silentLog;
  }

  /** Loads the file in its own process, which then ends. Throws an Error that names the file, the line and what to do. */
  async describe(): Promise<PythonDescription> {
    const process = new PythonProcess(this.#file, this.#options, { onMessage() {}, onEnd() {}, onOutput() {} });
    try {
      return await process.ready;
    } catch (error) {
      throw new Error(describeLoadError(this.#file, error), { cause: error });
    } finally {
      process.kill('it was only asked what it is');
    }
  }

  openRollout(): RolloutHandle {
    return { number: this.#next++ };
  }

  closeRollout({ number, process }: RolloutHandle): void {
    process?.send({ type: 'close', rollout: number });
  }

  async call(name: PythonFunction, call: PythonCall): Promise<unknown> {
    const { signal, rollout, context } = call;
    signal?.throwIfAborted();
    const process = await this.#open(rollout, name);
    const id = this.#next++;
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    this.#calls.set(id, { ...call, name, process, askErrors: new Map(), resolve, reject });
    process.beginCall();
    const onAbort = () => {
      reject(signal?.reason);
      this.#cancel(id, process);
    };
    signal?.addEventListener('abort', onAbort, { once: true });
    if (signal?.aborted) onAbort();
    else process.send({ type: 'call', id, function: name, context, ...definedOf({ rollout: rollout?.number }) });
    try {
      return await promise;
    } finally {
      signal?.removeEventListener('abort', onAbort);
    }
  }

  /** The process that knows the rollout, or a running one. */
  async #open(rollout: RolloutHandle | undefined, name: PythonFunction): Promise<PythonProcess> {
    const died = (why: string) => this.#toDeath(name, rollout?.process, `the Python process of ${this.#file}: ${why}`);
    const end = rollout?.process?.endedBy;
    if (end !== undefined) throw died(`${before} ${name}, and what it knew of the rollout is lost (${end})`);
    if (!this.#process?.isAlive) this.#process = this.#start();
    const process = rollout?.process ?? this.#process;
    try {
      await process.ready;
    } catch (error) {
      throw error instanceof PythonError ? new Error(describeLoadError(this.#file, error), { cause: error }) : died(messageOf(error));
    }
    if (rollout) rollout.process = process;
    return process;
  }

  #start(): PythonProcess {
    const log = this.#log;
    const process: PythonProcess = new PythonProcess(this.#file, this.#options, {
      onMessage: (message) => this.#take(message),
      onOutput: (line) => log.info('scenario-output', { file: this.#file, line }),
      onEnd: (why) => {
        log.warn('scenario-process-died', { file: this.#file, why });
        this.#failAll(process, why);
      },
    });
    return process;
  }

  #take(message: Exclude<FromPython, { type: 'ready' | 'refused' | 'pong' }>): void {
    if (message.type === 'ask') return void this.#answer(message);
    const call = this.#remove(message.id);
    if (message.type === 'return') call?.resolve(message.value);
    else if (call) call.reject(toError(message.error, call));
  }

  async #answer({ id, call: number, method, args }: Extract<FromPython, { type: 'ask' }>): Promise<void> {
    const call = this.#calls.get(number);
    if (!call) return; // it was cancelled, and Python knows
    try {
      if (!call.onAsk) throw new RolloutError('run-failed', `${method} is not possible in ${call.name}`);
      call.process.send({ type: 'answer', id, value: (await call.onAsk(method, args)) ?? null });
    } catch (error) {
      call.askErrors.set(id, error);
      const code = error instanceof RolloutError ? error.code : 'failed';
      call.process.send({ type: 'answer', id, error: { code, message: messageOf(error) } });
    }
  }

  #cancel(id: number, process: PythonProcess): void {
    process.send({ type: 'cancel', id });
    const call = this.#calls.get(id);
    if (!call) return;
    call.stopTimer = systemClock.after(cancelMs, () => {
      this.#stuck.add(id);
      this.#log.warn('scenario-call-stuck', { file: this.#file, stuck: this.#stuck.size });
      if (this.#stuck.size >= this.#options.maxStuck) process.kill(`${this.#stuck.size} of its calls did not end when their time was up`);
    });
  }

  #remove(id: number): RunningCall | undefined {
    const call = this.#calls.get(id);
    this.#calls.delete(id);
    this.#stuck.delete(id);
    call?.stopTimer?.();
    call?.process.endCall();
    return call;
  }

  #failAll(process: PythonProcess, why: string): void {
    for (const [id, call] of this.#calls) {
      if (call.process !== process) continue;
      this.#remove(id);
      call.reject(this.#toDeath(call.name, process, `the Python process of ${this.#file} died during ${call.name}: ${why}`));
    }
  }

  /** Ends the process for good. */
  close(): void {
    this.#process?.kill('its rollout has ended');
  }

  /** Of the one rollout of a process, once its agent has acted; otherwise it says nothing about an agent. */
  #toDeath(name: PythonFunction, process: PythonProcess | undefined, message: string): Error {
    const { apart } = this.#options;
    const isOwn = apart !== undefined && process !== undefined && !early.has(name);
    return isOwn && (apart === 'last' || !process.isKilledFromOutside) ? new Error(message) : new RolloutError('scenario-died', message);
  }
}

/** Whether a process died while it was at work for this rollout, if another one may have been the reason. */
export function isDuringOwnCall({ code, message }: Pick<Failure, 'code' | 'message'>): boolean {
  return code === 'scenario-died' && !message.includes(before);
}

function toError(failure: PythonFailure, { askErrors }: RunningCall): unknown {
  if (failure.ask !== undefined && askErrors.has(failure.ask)) return askErrors.get(failure.ask);
  const error = new PythonError(failure);
  return failure.blame === undefined ? error : Object.assign(new ScenarioError(failure.blame, failure.message, { cause: error }), error);
}

function describeLoadError(file: string, error: unknown): string {
  if (!(error instanceof PythonError)) return `${file}: ${messageOf(error)}`;
  const { name, message, place } = error;
  if (name === 'BadScenario') return `${file} is not a scenario: ${message}`;
  const where = place ?? file;
  if (name.endsWith('SyntaxError') || name === 'IndentationError' || name === 'TabError') return `${where}: syntax error: ${message}`;
  if (name === 'ModuleNotFoundError') {
    const [, missing = ''] = /No module named '([^'.]+)/.exec(message) ?? [];
    return `${where}: ${message}; install it into a virtual environment next to the file: python3 -m venv .venv && .venv/bin/pip install ${missing}`;
  }
  return `${where}: the file raised while it was loaded: ${name}: ${message}`;
}
