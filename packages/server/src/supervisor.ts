// Keeps a number of worker processes alive for a server. A worker that dies is replaced, and what it held goes back to the queue at
// once, before its lease runs out. A worker whose event loop is blocked for several leases is killed and replaced. A worker that cannot
// start is not tried again. When this process dies, its workers notice and hand back what they hold.

import { type ChildProcess, fork } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { sleep } from '@millrace/base/clock';
import type { Log } from '@millrace/base/log';
import { findParts } from '@millrace/base/parts';
import { messageOf } from '@millrace/protocol';
import { sweepRunFolder } from '@millrace/sandbox';
import type { WorkerStore } from '@millrace/store';
import type { ServiceConfig } from './config.ts';
import { StartError } from './service.ts';
import type { LogFormat } from './text-log.ts';
import { cannotStartCode, type OpenedModel, toPulseMs, type WorkerOrder, workerReport } from './worker-channel.ts';

interface SupervisorOptions {
  readonly count: number;
  readonly config: ServiceConfig;
  readonly store: Pick<WorkerStore, 'workers' | 'dropWorker'>;
  /** Of the service, for workers that reach the store through servers. */
  readonly key?: string | undefined;
  readonly log: Log;
  /** How the workers log. */
  readonly logFormat: LogFormat;
  /** Receives what each worker learned when it opened its model. */
  readonly onModel?: (model: OpenedModel) => void;
  /** What a worker process runs; another program in tests. */
  readonly workerMain?: URL;
}

/** A worker that lives this long is not in a crash loop. */
const steadyMs = 5000;
const maxDelayMs = 5000;
/** Crashes in a row, without a stated reason and before any worker was ever ready, after which the service gives up. */
const maxSilentCrashes = 3;
/**
 * A larger space for new objects: what a turn needs lives while its backend samples, and would be moved twice and then collected with the
 * old ones. In three pairs of runs of the capacity benchmarks, workers made 4 to 14 % more turns.
 */
const workerFlags = ['--disable-warning=ExperimentalWarning', '--disable-warning=MODULE_TYPELESS_PACKAGE_JSON', '--max-semi-space-size=64'];
/** What a worker may take to leave, in addition to the time for finishing what runs. */
const leaveMs = 5000;

/** A worker that misses this many pulses in a row is frozen. With half a lease for each, its lease has ended long ago. */
const mostMissed = 6;

/** How one worker process ended. */
interface WorkerExit {
  readonly pid: number | undefined;
  /** In the ids of the worker: a process id says little where machines or containers share a store. */
  readonly launch: string;
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly reason: string | undefined;
  readonly stack: string | undefined;
  readonly livedMs: number;
}

export class Supervisor implements AsyncDisposable {
  /** Resolves when the first worker is ready. Rejects with a StartError when none can start. */
  readonly started: Promise<void>;
  /** Resolves with the reason when no worker is left and none can be started. */
  readonly failed: Promise<string>;
  readonly #options: SupervisorOptions;
  readonly #stopping = new AbortController();
  readonly #children = new Set<ChildProcess>();
  /** Those that claim rollouts, and how many pulses each has missed in a row. */
  readonly #ready = new Map<ChildProcess, number>();
  readonly #keepers: Promise<void>[];
  readonly #onStart = Promise.withResolvers<void>();
  readonly #onFail = Promise.withResolvers<string>();
  /** Reasons that were logged since a worker last ran for a while. */
  readonly #logged = new Set<string>();
  #hasStarted = false;
  #silentCrashes = 0;
  #kept: number;

  constructor(options: SupervisorOptions) {
    this.#options = options;
    this.started = this.#onStart.promise;
    this.failed = this.#onFail.promise;
    this.started.catch(() => {}); // not every caller waits for it
    if (options.count === 0) this.#onStart.resolve();
    this.#kept = options.count;
    this.#keepers = [...Array.from({ length: options.count }, () => this.#keep()), this.#replaceFrozen()];
  }

  get pids(): readonly number[] {
    return [...this.#children].flatMap(({ pid }) => (pid === undefined ? [] : [pid]));
  }

  /** How many workers claim rollouts now. */
  get readyCount(): number {
    return this.#ready.size;
  }

  /** Asks every worker to finish what runs. Disposing waits for it. */
  drain(): void {
    if (this.#stopping.signal.aborted) return;
    this.#stopping.abort();
    for (const child of this.#children) child.kill('SIGTERM');
  }

  /** Ends a drain: what still runs goes back to the queue now. */
  handBackNow(): void {
    this.drain();
    for (const child of this.#children) child.kill('SIGTERM');
  }

  /** Drains, and waits until every worker is gone. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.drain();
    const patience = new AbortController();
    const { handBackMs } = this.#options.config.pipeline;
    const overdue = sleep(handBackMs + leaveMs, { signal: patience.signal }).then(
      () => this.#children.forEach((child) => void child.kill('SIGKILL')),
      () => {}, // They all left in time.
    );
    await Promise.all(this.#keepers);
    patience.abort();
    await overdue;
    await this.#sweep();
  }

  /** Workers sweep for each other; what the last ones left, perhaps killed, would stay until the next service starts here. */
  async #sweep(): Promise<void> {
    const { config, log } = this.#options;
    try {
      const count = await sweepRunFolder(config.run);
      if (count > 0) log.warn('sandboxes-swept', { count });
    } catch (error) {
      log.warn('sandbox-close-failed', { error: messageOf(error) });
    }
  }

  async #keep(): Promise<void> {
    const { signal } = this.#stopping;
    let delayMs = 0;
    while (!signal.aborted) {
      const exit = await this.#runWorker();
      if (signal.aborted) return;
      if (exit.pid !== undefined) await this.#removeWorker(exit.launch);
      if (this.#isHopeless(exit)) return this.#giveUp(exit);
      delayMs = exit.livedMs > steadyMs ? 0 : Math.min(maxDelayMs, delayMs * 2 + 100);
      this.#logExit(exit, delayMs);
      await sleep(delayMs, { signal }).catch(() => {}); // Stopping ends the pause.
    }
  }

  /** A worker whose event loop is blocked, perhaps for ever, has lost its lease: another process takes its place. */
  async #replaceFrozen(): Promise<void> {
    const { signal } = this.#stopping;
    const pulseMs = toPulseMs(this.#options.config.pipeline);
    while (!signal.aborted) {
      await sleep(pulseMs, { signal }).catch(() => {}); // Stopping ends the pause.
      // Counted rather than measured: after this process was stopped, the pulses that it missed arrive before the next look.
      for (const [child, missed] of this.#ready) this.#ready.set(child, missed + 1);
      const frozen = signal.aborted ? [] : [...this.#ready].filter(([, missed]) => missed === mostMissed);
      for (const [child] of frozen) {
        this.#options.log.warn('worker-frozen', { pid: child.pid, silentMs: mostMissed * pulseMs });
        child.kill('SIGKILL');
      }
    }
  }

  async #runWorker(): Promise<WorkerExit> {
    const { config, key, log, logFormat, workerMain = findParts().worker } = this.#options;
    const startedAt = performance.now();
    const launch = randomUUID().slice(0, 8);
    // In its own session: a Ctrl-C in the terminal reaches neither the worker nor its sandboxes.
    const child = fork(workerMain, {
      detached: true,
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      execArgv: workerFlags,
    });
    this.#children.add(child);
    let last: { reason?: string | undefined; stack?: string | undefined } = {};
    child.on('message', (message) => {
      const said = workerReport.parse(message);
      if (said.kind === 'stopped') last = said;
      else if (said.kind === 'pulse') this.#notePulse(child);
      else this.#setReady(child, said.model);
    });
    const exited = once(child, 'exit').catch((error) => {
      last = { reason: `a worker process could not be started: ${messageOf(error)}` };
      return [1, null];
    });
    const order: WorkerOrder = { config, logFormat, launch, key };
    child.send(order, (error) => {
      // A worker that left before it got its order says why itself.
      const isGone = error !== null && 'code' in error && error.code === 'EPIPE';
      if (error && !isGone) log.error('worker-start-failed', { pid: child.pid, error: messageOf(error) });
    });
    const [code, signal] = await exited;
    this.#children.delete(child);
    this.#ready.delete(child);
    return { pid: child.pid, launch, code, signal, reason: last.reason, stack: last.stack, livedMs: performance.now() - startedAt };
  }

  /** The last pulse of a worker may arrive after its end. */
  #notePulse(child: ChildProcess): void {
    if (this.#ready.has(child)) this.#ready.set(child, 0);
  }

  #setReady(child: ChildProcess, model: OpenedModel | undefined): void {
    if (model) this.#options.onModel?.(model);
    this.#ready.set(child, 0);
    this.#hasStarted = true;
    this.#silentCrashes = 0;
    this.#onStart.resolve();
  }

  /** Until a first worker is ready, any reason that one reports is final: a clear refusal is better than a silent loop. */
  #isHopeless({ code, reason }: WorkerExit): boolean {
    if (code === cannotStartCode) return true;
    if (this.#hasStarted) return false;
    if (reason === undefined) this.#silentCrashes += 1;
    return reason !== undefined || this.#silentCrashes >= maxSilentCrashes;
  }

  #giveUp(exit: WorkerExit): void {
    const reason = exit.reason ?? `a worker ended with ${describeEnd(exit)} before it was ready, ${this.#silentCrashes} times in a row`;
    this.#kept -= 1;
    this.#onStart.reject(new StartError(reason));
    if (!this.#hasStarted) return;
    this.#options.log.error('worker-cannot-start', { reason, workersLeft: this.#kept });
    if (this.#kept === 0) this.#onFail.resolve(reason);
  }

  /** A crash loop is reported once for each reason, not once for each try. */
  #logExit(exit: WorkerExit, delayMs: number): void {
    if (exit.livedMs > steadyMs) this.#logged.clear();
    const { pid, code, signal, reason, stack } = exit;
    const key = reason ?? (code === null ? undefined : `exit code ${code}`);
    if (key !== undefined && this.#logged.has(key)) return;
    if (key !== undefined) this.#logged.add(key);
    this.#options.log.warn('worker-exit', { pid, code, signal, reason, stack, restartMs: delayMs });
  }

  async #removeWorker(launch: string): Promise<void> {
    const { store, config, log } = this.#options;
    try {
      const dead = (await store.workers()).filter((worker) => !worker.hasEnded && worker.id.includes(`:${launch}:`));
      for (const { id } of dead) await store.dropWorker(id, config.pipeline);
    } catch (error) {
      // The lease does the same, later.
      log.error('worker-remove-failed', { launch, error: messageOf(error) });
    }
  }
}

function describeEnd({ code, signal }: WorkerExit): string {
  return signal === null ? `exit code ${code}` : signal;
}
