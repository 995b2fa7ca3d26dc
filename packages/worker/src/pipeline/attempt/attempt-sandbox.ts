// The sandboxes of an attempt: the agent's, then those of the verifier. All are closed however the attempt ends, even while one opens.

import type { Sandbox } from '@millrace/sandbox';

export class AttemptSandbox implements AsyncDisposable {
  #opened: Promise<Sandbox>[] = [];

  /** Owns the sandbox that `open` returns, even if the caller has stopped waiting for it. */
  async open(open: () => Promise<Sandbox>): Promise<Sandbox> {
    const opening = open();
    this.#opened.push(opening);
    return await opening;
  }

  async close(): Promise<void> {
    const opened = this.#opened;
    this.#opened = [];
    const sandboxes = await Promise.all(opened.map((opening) => opening.catch(() => undefined))); // one that did not open needs no closing
    await Promise.all(sandboxes.map((sandbox) => sandbox?.[Symbol.asyncDispose]()));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
