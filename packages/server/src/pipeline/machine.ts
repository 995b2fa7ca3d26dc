// The sandbox that an attempt may hold: opened at most once at a time, closed on every way out, and waited for while it opens.

import type { Sandbox } from '../sandbox/sandbox.ts';

export class Machine implements AsyncDisposable {
  #opening: Promise<Sandbox> | undefined;

  /** The sandbox that `open` makes is this machine's, even when nobody waits for it any more. */
  async open(open: () => Promise<Sandbox>): Promise<Sandbox> {
    await this.close();
    this.#opening = open();
    return await this.#opening;
  }

  async close(): Promise<void> {
    const opening = this.#opening;
    this.#opening = undefined;
    const sandbox = await opening?.catch(() => undefined); // What never opened need not be closed.
    await sandbox?.[Symbol.asyncDispose]();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
