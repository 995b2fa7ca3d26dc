// Sandboxes by the name of their trajectory: opened with its first action, kept with their shell, their Python and their files until the
// trajectory ends, or until no action has come for a while. No more than `most` are open; the next one waits.

import type { Clock } from '@millrace/base/clock';
import type { Log } from '@millrace/base/log';
import { type Slot, Slots } from '@millrace/base/slots';
import { RolloutError } from '@millrace/protocol';
import type { Sandbox, SandboxDriver, SandboxSpec } from '@millrace/sandbox';

interface ToolSandboxesOptions {
  readonly driver: SandboxDriver;
  readonly most: number;
  /** A sandbox that had no action for this long is closed. */
  readonly idleMs: number;
  readonly clock: Clock;
  readonly log: Log;
}

interface HeldSandbox {
  readonly sandbox: Promise<Sandbox>;
  readonly stop: AbortController;
  slot?: Slot;
  /** Actions that run or wait in it now. */
  users: number;
  cancelTimer: () => void;
}

export class ToolSandboxes implements AsyncDisposable {
  readonly #options: ToolSandboxesOptions;
  readonly #slots: Slots;
  readonly #held = new Map<string, HeldSandbox>();
  readonly #closing = new Set<Promise<void>>();

  constructor(options: ToolSandboxesOptions) {
    this.#options = options;
    this.#slots = new Slots(options.most);
  }

  get most(): number {
    return this.#options.most;
  }

  get count(): number {
    return this.#held.size;
  }

  has(name: string): boolean {
    return this.#held.has(name);
  }

  /** Calls back with the sandbox of that name, which is opened if it is not there. One that has died is removed. */
  async use<T>(name: string, spec: SandboxSpec, act: (sandbox: Sandbox) => Promise<T>): Promise<T> {
    const held = this.#held.get(name) ?? this.#open(name, spec);
    held.users += 1;
    held.cancelTimer();
    try {
      const sandbox = await held.sandbox;
      return await act(sandbox).finally(() => {
        if (sandbox.died.aborted) void this.close(name);
      });
    } catch (error) {
      // A sandbox that did not open is not kept: the next action may find room for it.
      if (await isMissing(held.sandbox)) void this.close(name);
      throw error;
    } finally {
      held.users -= 1;
      if (held.users === 0 && this.#held.get(name) === held) {
        held.cancelTimer = this.#options.clock.after(this.#options.idleMs, () => {
          this.#options.log.info('tool-sandbox-idle', { name });
          void this.close(name);
        });
      }
    }
  }

  /** Resolves when its sandbox is gone; at once if there is none. */
  async close(name: string): Promise<void> {
    const held = this.#held.get(name);
    if (held === undefined) return;
    this.#held.delete(name);
    const closed = this.#end(held).finally(() => this.#closing.delete(closed));
    this.#closing.add(closed);
    await closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#held.keys()].map((name) => this.close(name)));
    await Promise.all(this.#closing);
  }

  #open(name: string, spec: SandboxSpec): HeldSandbox {
    const stop = new AbortController();
    const held: HeldSandbox = {
      sandbox: this.#start(spec, stop.signal, (slot) => (held.slot = slot)),
      stop,
      users: 0,
      cancelTimer: () => {},
    };
    this.#held.set(name, held);
    return held;
  }

  async #start(spec: SandboxSpec, signal: AbortSignal, keep: (slot: Slot) => void): Promise<Sandbox> {
    keep(await this.#slots.acquire({ signal }));
    return await this.#options.driver.open(spec, { signal });
  }

  async #end(held: HeldSandbox): Promise<void> {
    held.cancelTimer();
    held.stop.abort(new RolloutError('cancelled', 'the trajectory has ended'));
    try {
      await (await held.sandbox)[Symbol.asyncDispose]();
    } catch {
      // It never opened: there is nothing to close.
    } finally {
      held.slot?.[Symbol.dispose]();
    }
  }
}

async function isMissing(sandbox: Promise<Sandbox>): Promise<boolean> {
  return await sandbox.then(
    () => false,
    () => true,
  );
}
