// Sends delivered groups to the webhooks of their batches, in order, and retries each with increasing delays until it gets a 2xx.
// The position is in the store, so a restart continues with the next group. A webhook that never responds blocks only its batch.

import { createHmac } from 'node:crypto';
import { definedOf, type Event, messageOf } from '@millrace/protocol';
import { request } from 'undici';
import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import type { WebhookDue } from '../store/batch-store.ts';
import type { Store } from '../store/store.ts';
import { toFullGroupView } from './group-view.ts';

export interface WebhookDeps {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
}

const firstPauseMs = 500;
const longestPauseMs = 60_000;
const responseTimeoutMs = 30_000;
const pollMs = 5000;

export class WebhookSender implements AsyncDisposable {
  readonly #deps: WebhookDeps;
  readonly #closing = new AbortController();
  /** One delivery at a time per batch. */
  readonly #sending = new Map<string, Promise<void>>();
  #stopTimer: () => void = () => {};
  #reading: Promise<void> | undefined;
  #again = false;

  constructor(deps: WebhookDeps) {
    this.#deps = deps;
  }

  start(): void {
    this.#wake();
  }

  push(events: readonly Event[]): void {
    if (events.some(({ kind, data }) => kind === 'group-end' && data.state === 'delivered')) this.#wake();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort();
    this.#stopTimer();
    await this.#reading;
    await Promise.all(this.#sending.values());
  }

  #wake(): void {
    this.#again = true;
    if (!this.#closing.signal.aborted) this.#reading ??= this.#readDue();
  }

  async #readDue(): Promise<void> {
    const { store, clock, log } = this.#deps;
    try {
      while (this.#again && !this.#closing.signal.aborted) {
        this.#again = false;
        const { due, nextAtMs } = await store.dueWebhooks();
        for (const one of due) if (!this.#sending.has(one.batch)) this.#sending.set(one.batch, this.#send(one));
        this.#stopTimer();
        const pauseMs = nextAtMs === undefined ? pollMs : Math.min(pollMs, Math.max(1, nextAtMs - clock.now()));
        this.#stopTimer = this.#closing.signal.aborted ? () => {} : clock.after(pauseMs, () => this.#wake());
      }
    } catch (error) {
      log.error('webhook-read-failed', { error: messageOf(error) });
      this.#stopTimer = clock.after(pollMs, () => this.#wake());
    } finally {
      this.#reading = undefined;
    }
  }

  async #send(due: WebhookDue): Promise<void> {
    const { store, log } = this.#deps;
    const { batch, seq, attempts } = due;
    try {
      const fault = await this.#post(due);
      if (this.#closing.signal.aborted && fault !== undefined) return;
      const delayMs = Math.min(longestPauseMs, firstPauseMs * 2 ** Math.min(attempts, 20));
      if (fault !== undefined) log.warn('webhook-failed', { batch, seq, attempts: attempts + 1, fault, retry_ms: delayMs });
      await store.noteWebhook(definedOf({ batch, seq, delayMs: fault === undefined ? undefined : delayMs }));
    } catch (error) {
      log.error('webhook-send-failed', { batch, seq, error: messageOf(error) });
    } finally {
      this.#sending.delete(batch);
      this.#wake();
    }
  }

  /** Returns what went wrong; absent on success. */
  async #post({ batch, seq, url, secret }: WebhookDue): Promise<string | undefined> {
    const [group] = await this.#deps.store.deliveredGroups(batch, { after: seq - 1, limit: 1 });
    if (group === undefined) return `group ${seq} was not found`;
    const body = JSON.stringify(await toFullGroupView(group, this.#deps.store));
    const headers: Record<string, string> = { 'content-type': 'application/json', 'x-millrace-delivery': `${batch}/${seq}` };
    if (secret !== undefined) headers['x-millrace-signature'] = `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;
    try {
      const signal = this.#closing.signal;
      const reply = await request(url, {
        method: 'POST',
        body,
        headers,
        signal,
        headersTimeout: responseTimeoutMs,
        bodyTimeout: responseTimeoutMs,
      });
      await reply.body.dump({ limit: 65_536 });
      return reply.statusCode >= 200 && reply.statusCode < 300 ? undefined : `responded with ${reply.statusCode}`;
    } catch (error) {
      return error instanceof Error ? error.message || error.name : String(error);
    }
  }
}
