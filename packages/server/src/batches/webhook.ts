// Sends delivered groups to the webhooks of their batches, in order, and retries each with increasing delays until it gets a 2xx.
// The position is in the store, so a restart continues with the next group, and of several servers one sends each group: the one that
// holds it in the store. A webhook that never responds blocks only its batch.
// Headers and signature are those of the Standard Webhooks specification, so its libraries can verify them.

import { createHmac } from 'node:crypto';
import { Readable } from 'node:stream';
import { type Clock, sleep } from '@millrace/base/clock';
import type { Log } from '@millrace/base/log';
import { definedOf, type Event, messageOf } from '@millrace/protocol';
import type { Store, WebhookDue } from '@millrace/store';
import { Agent, request } from 'undici';
import { toGroupJson } from './group-json.ts';
import { holdDelivery } from './webhook-hold.ts';
import type { WebhookTargets } from './webhook-target.ts';

interface WebhookDeps {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  readonly targets: WebhookTargets;
}

const firstPauseMs = 500;
const longestPauseMs = 60_000;
const responseTimeoutMs = 30_000;
const pollMs = 5000;
/** The clock of the store may be behind this one: a look that finds nothing due is not repeated at once. */
const leastPauseMs = 20;

export class WebhookSender implements AsyncDisposable {
  readonly #deps: WebhookDeps;
  readonly #agent: Agent;
  readonly #closing = new AbortController();
  /** One delivery at a time per batch. */
  readonly #sending = new Map<string, Promise<void>>();
  #stopTimer: () => void = () => {};
  #reading: Promise<void> | undefined;
  #again = false;

  constructor(deps: WebhookDeps) {
    this.#deps = deps;
    this.#agent = new Agent({ connect: { lookup: deps.targets.lookup } });
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
    await this.#agent.destroy();
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
        const pauseMs = nextAtMs === undefined ? pollMs : Math.min(pollMs, Math.max(leastPauseMs, nextAtMs - clock.now()));
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
    const { log, clock } = this.#deps;
    const { batch, seq, attempts } = due;
    const { signal } = this.#closing;
    try {
      await using held = await holdDelivery(due, this.#deps);
      if (!held) return;
      const fault = await this.#post(due, AbortSignal.any([signal, held.lost]));
      if (held.lost.aborted) return log.warn('webhook-lost', { batch, seq, effect: 'another server sends this group' });
      if (this.#closing.signal.aborted && fault !== undefined) return;
      const delayMs = Math.min(longestPauseMs, firstPauseMs * 2 ** Math.min(attempts, 20));
      if (fault !== undefined) log.warn('webhook-failed', { batch, seq, attempts: attempts + 1, fault, retry_ms: delayMs });
      await this.#save(definedOf({ batch, seq, delayMs: fault === undefined ? undefined : delayMs }));
    } catch (error) {
      log.error('webhook-save-failed', { batch, seq, error: messageOf(error), retry_ms: pollMs });
      await sleep(pollMs, { clock, signal }).catch(() => {}); // closing ends the pause
    } finally {
      this.#sending.delete(batch);
      this.#wake();
    }
  }

  /** Tries until the outcome is stored, because the group would be sent again without it. */
  async #save(outcome: Parameters<Store['noteWebhook']>[0]): Promise<void> {
    const { store, clock, log } = this.#deps;
    const { signal } = this.#closing;
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(longestPauseMs, 2 * pauseMs)) {
      try {
        return await store.noteWebhook(outcome);
      } catch (error) {
        log.error('webhook-save-failed', { batch: outcome.batch, seq: outcome.seq, error: messageOf(error), retry_ms: pauseMs });
      }
      const woken = await sleep(pauseMs, { clock, signal }).catch(() => 'closing' as const);
      if (woken === 'closing') return;
    }
  }

  /** Returns what went wrong; absent on success. */
  async #post({ batch, seq, url, secret }: WebhookDue, signal: AbortSignal): Promise<string | undefined> {
    const { store, clock, targets } = this.#deps;
    try {
      const fault = targets.findFault(url);
      if (fault !== undefined) return fault;
      const [group] = await store.deliveredGroups(batch, { after: seq - 1, limit: 1 });
      if (group === undefined) return `group ${seq} was not found`;
      const stamp = { id: `${batch}/${seq}`, seconds: Math.floor(clock.now() / 1000) };
      const body: Buffer[] = [];
      for await (const piece of toGroupJson(group, store)) body.push(Buffer.from(piece));
      const reply = await request(url, {
        method: 'POST',
        body: Readable.from(body),
        headers: {
          'content-type': 'application/json',
          'content-length': String(body.reduce((total, { length }) => total + length, 0)),
          'webhook-id': stamp.id,
          'webhook-timestamp': String(stamp.seconds),
          ...definedOf({ 'webhook-signature': secret && sign(body, { secret, ...stamp }) }),
        },
        signal,
        dispatcher: this.#agent,
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

/** A secret that begins with `whsec_` holds the key in base64; any other secret is the key itself. */
function sign(body: readonly Buffer[], { secret, id, seconds }: { secret: string; id: string; seconds: number }): string {
  const prefix = 'whsec_';
  const key = secret.startsWith(prefix) ? Buffer.from(secret.slice(prefix.length), 'base64') : secret;
  const hmac = createHmac('sha256', key).update(`${id}.${seconds}.`);
  for (const piece of body) hmac.update(piece);
  return `v1,${hmac.digest('base64')}`;
}
