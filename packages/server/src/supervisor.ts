// Keeps a number of worker processes alive beside a server. A worker that dies is replaced, and what it held goes back to the
// queue at once rather than when its lease runs out; when this process dies, its workers notice and hand back what they hold.

import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { hostname } from 'node:os';
import { sleep } from './base/clock.ts';
import type { Log } from './base/log.ts';
import { findParts } from './base/parts.ts';
import type { ServiceConfig } from './config.ts';
import type { Store } from './store/store.ts';

export interface SupervisorOptions {
  readonly count: number;
  readonly config: ServiceConfig;
  readonly store: Store;
  readonly log: Log;
}

/** A worker that lives so long is no crash loop. */
const steadyMs = 5000;
const maxDelayMs = 5000;
/** Beyond the time for handing back, what a worker may take to leave. */
const leaveMs = 5000;

export class Supervisor implements AsyncDisposable {
  readonly #options: SupervisorOptions;
  readonly #stopping = new AbortController();
  readonly #children = new Set<ChildProcess>();
  readonly #keepers: Promise<void>[];

  constructor(options: SupervisorOptions) {
    this.#options = options;
    this.#keepers = Array.from({ length: options.count }, () => this.#keep());
  }

  get pids(): readonly number[] {
    return [...this.#children].flatMap(({ pid }) => (pid === undefined ? [] : [pid]));
  }

  /** Asks every worker to finish or hand back, and waits until they are gone. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort();
    for (const child of this.#children) child.kill('SIGTERM');
    const patience = new AbortController();
    const { handBackMs } = this.#options.config.pipeline;
    const overdue = sleep(handBackMs + leaveMs, { signal: patience.signal }).then(
      () => this.#children.forEach((child) => void child.kill('SIGKILL')),
      () => {}, // They all left in time.
    );
    await Promise.all(this.#keepers);
    patience.abort();
    await overdue;
  }

  async #keep(): Promise<void> {
    const { signal } = this.#stopping;
    let delayMs = 0;
    while (!signal.aborted) {
      const startedAt = performance.now();
      await this.#runChild();
      delayMs = performance.now() - startedAt > steadyMs ? 0 : Math.min(maxDelayMs, delayMs * 2 + 100);
      if (!signal.aborted) await sleep(delayMs, { signal }).catch(() => {}); // Stopping ends the pause.
    }
  }

  async #runChild(): Promise<void> {
    const { config, log } = this.#options;
    const child = fork(findParts().worker, {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      execArgv: ['--disable-warning=ExperimentalWarning'],
    });
    this.#children.add(child);
    const exited = once(child, 'exit');
    child.send(config, (error) => error && log.error('worker-start-failed', { pid: child.pid, error: String(error) }));
    const [code, signalName] = await exited;
    this.#children.delete(child);
    if (this.#stopping.signal.aborted) return;
    log.warn('worker-exit', { pid: child.pid, code, signal: signalName });
    if (child.pid !== undefined) await this.#sendBack(child.pid);
  }

  async #sendBack(pid: number): Promise<void> {
    const { store, config, log } = this.#options;
    try {
      const dead = (await store.workers()).filter((worker) => worker.pid === pid && worker.host === hostname());
      for (const { id } of dead) await store.dropWorker(id, config.pipeline);
    } catch (error) {
      // The lease does the same, later.
      log.error('worker-remove-failed', { pid, error: String(error) });
    }
  }
}
