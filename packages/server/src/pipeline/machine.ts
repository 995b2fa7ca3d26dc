// The sandbox of an attempt: at most one is open at a time, and it is closed however the attempt ends, even while it opens.

import type { Sandbox } from '../sandbox/sandbox.ts';

export class Machine implements AsyncDisposable {
  #opening: Promise<Sandbox> | undefined;

  /** Owns the sandbox that `open` returns, even if the caller has stopped waiting for it. */
  async open(open: () => Promise<Sandbox>): Promise<Sandbox> {
    await this.close();
    this.#opening = open();
    return await this.#opening;
  }

  async close(): Promise<void> {
    const opening = this.#opening;
    this.#opening = undefined;
    const sandbox = await opening?.catch(() => undefined); // A sandbox that did not open needs no closing.
    await sandbox?.[Symbol.asyncDispose]();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
