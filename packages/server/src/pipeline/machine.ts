// The sandbox that an attempt may hold: opened at most once at a time, closed on every way out, and waited for while it opens.

import type { Sandbox } from '../sandbox/sandbox.ts';

interface Opened {
  readonly sandbox: Promise<Sandbox>;
  readonly below: AsyncDisposableStack;
}

export class Machine implements AsyncDisposable {
  #opened: Opened | undefined;

  /** The sandbox that `open` makes is this machine's, even when nobody waits for it any more. What it puts `below` goes after it. */
  async open(open: (below: AsyncDisposableStack) => Promise<Sandbox>): Promise<Sandbox> {
    await this.close();
    const below = new AsyncDisposableStack();
    const sandbox = open(below);
    this.#opened = { sandbox, below };
    return await sandbox;
  }

  async close(): Promise<void> {
    const opened = this.#opened;
    this.#opened = undefined;
    const sandbox = await opened?.sandbox.catch(() => undefined); // What never opened need not be closed.
    await sandbox?.[Symbol.asyncDispose]();
    await opened?.below.disposeAsync();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
