// The date of the database, for processes on many machines: each keeps the difference between its own clock, which never jumps, and
// the database's date, and learns it again with every transaction.

import { type Clock, systemClock } from '@millrace/base/clock';

export class DatabaseClock implements Clock {
  #originMs = systemClock.now() - systemClock.monotonic();
  #isKnown = false;

  now(): number {
    return Math.trunc(this.#originMs + systemClock.monotonic());
  }

  monotonic(): number {
    return systemClock.monotonic();
  }

  after(ms: number, callback: () => void): () => void {
    return systemClock.after(ms, callback);
  }

  /**
   * The database read its date at some moment between sending and receiving. A reply that took long says little, and changes nothing
   * that it does not contradict: only a date that really stepped moves this clock by much.
   */
  learn(dateMs: number, { sentAt, receivedAt }: { readonly sentAt: number; readonly receivedAt: number }): void {
    const [least, most] = [dateMs - receivedAt, dateMs - sentAt];
    this.#originMs = this.#isKnown ? Math.min(Math.max(this.#originMs, least), most) : (least + most) / 2;
    this.#isKnown = true;
  }
}
