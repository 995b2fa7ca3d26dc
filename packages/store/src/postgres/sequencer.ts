// Numbers the log for all processes that share the database: one of them at a time has this duty, by a lease, and looks at the inbox every
// few milliseconds while there are events. If it dies, another one takes the duty when the lease ends; nothing but the view of the log waits.
// Two that number at the same moment follow each other through the lock of the log, so the lease is only there to spare the database work.

import { randomUUID } from 'node:crypto';
import { sleep, systemClock } from '@millrace/base/clock';
import type { Log } from '@millrace/base/log';
import { messageOf } from '@millrace/protocol';
import pg from 'pg';
import type { DutyRequest } from '../servers/server-store.ts';
import { wakingKinds } from './engine/postgres-transaction.ts';
import { Session } from './engine/session.ts';

const dutyMs = 3_000;
const renewMs = dutyMs / 3;
/** Between two looks: at first after events, and once none have come for a while. */
const [shortestMs, longestMs] = [2, 8] as const;
/** A commit wakes a sequencer that sleeps. It still looks this often, in case a notification was lost. */
const pollMs = 500;
/** It goes to sleep after this long without an event, which is longer than commits count on it for. */
const sleepAfterMs = 1_100;

interface SequencerOptions {
  readonly address: string;
  readonly channel: string;
  readonly log: Log;
  takeDuty(request: DutyRequest): Promise<boolean>;
}

export class Sequencer implements AsyncDisposable {
  readonly #options: SequencerOptions;
  readonly #holder = randomUUID();
  readonly #closing = new AbortController();
  #session: Session | undefined;
  #heldUntil = Number.NEGATIVE_INFINITY;
  #renewing: Promise<void> | undefined;
  #numbering: Promise<void> | undefined;
  #wake = () => {};
  #isWoken = false;

  constructor(options: SequencerOptions) {
    this.#options = options;
  }

  start(): void {
    this.#renewing = this.#renewAll();
  }

  /** Hands the duty on. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort();
    this.#wake();
    await this.#renewing;
    await this.#numbering;
    if (this.#isHolder) await this.#takeDuty(0).catch(() => {}); // the lease ends by itself
    this.#heldUntil = Number.NEGATIVE_INFINITY;
    await this.#session?.close();
  }

  get #isHolder(): boolean {
    return systemClock.monotonic() < this.#heldUntil;
  }

  async #renewAll(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      await this.#renew();
      await sleep(renewMs, { clock: systemClock, signal }).catch(() => {}); // closing ends the pause
    }
  }

  async #renew(): Promise<void> {
    const wasHolder = this.#isHolder;
    const askedAt = systemClock.monotonic();
    try {
      this.#heldUntil = (await this.#takeDuty(dutyMs)) ? askedAt + dutyMs : Number.NEGATIVE_INFINITY;
    } catch (error) {
      if (!this.#closing.signal.aborted) this.#options.log.warn('sequencer-failed', { error: messageOf(error) });
    }
    if (this.#isHolder && !wasHolder) this.#options.log.info('sequencer-start', {});
    if (this.#isHolder && !this.#closing.signal.aborted) this.#numbering ??= this.#numberAll();
  }

  #takeDuty(leaseMs: number): Promise<boolean> {
    return this.#options.takeDuty({ name: 'sequence', holder: this.#holder, leaseMs });
  }

  async #numberAll(): Promise<void> {
    const { signal } = this.#closing;
    let pauseMs: number = shortestMs;
    let workedAt = systemClock.monotonic();
    while (this.#isHolder && !signal.aborted) {
      try {
        const added = await this.#number();
        if (added > 0) workedAt = systemClock.monotonic();
        pauseMs = added > 0 ? shortestMs : Math.min(1.5 * pauseMs, longestMs);
        if (systemClock.monotonic() - workedAt > sleepAfterMs) pauseMs = pollMs;
      } catch (error) {
        this.#options.log.warn('sequencer-failed', { error: messageOf(error) });
        pauseMs = pollMs;
      }
      if (await this.#rest(pauseMs)) workedAt = systemClock.monotonic();
    }
    this.#numbering = undefined;
    if (!this.#isHolder) {
      await this.#session?.close();
      this.#session = undefined;
    }
  }

  async #number(): Promise<number> {
    if (!this.#session || this.#session.isBroken) await this.#open();
    const sql = `SELECT sequence_log(${pg.escapeLiteral(this.#options.channel)}, ${wakingKinds}) AS added`;
    const [row] = (await this.#session?.query<{ added: number }>(sql)) ?? [];
    return row?.added ?? 0;
  }

  async #open(): Promise<void> {
    await this.#session?.close();
    this.#session = await Session.open(this.#options.address);
    await this.#session.listen(`${this.#options.channel}_log`, () => {
      this.#isWoken = true;
      this.#wake();
    });
  }

  /** Whether a commit ended the pause. */
  async #rest(ms: number): Promise<boolean> {
    if (!this.#isWoken)
      await new Promise<void>((resolve) => {
        const stop = systemClock.after(ms, resolve);
        this.#wake = () => {
          stop();
          resolve();
        };
      });
    const wasWoken = this.#isWoken;
    this.#isWoken = false;
    return wasWoken;
  }
}
