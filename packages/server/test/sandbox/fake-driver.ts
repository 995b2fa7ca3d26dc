// A driver of sandboxes that do nothing but live, answer probes and end, each when a test says so.

import { sandboxId } from '@millrace/protocol';
import type { OpenOptions, Sandbox, SandboxDriver, SandboxSpec } from '@millrace/server';

interface Opened {
  readonly sandbox: Sandbox;
  readonly spec: SandboxSpec;
  isHandedOver: boolean;
  isClosed: boolean;
  die(): void;
  /** Probes are answered with an error. */
  refuse(): void;
  /** Probes are not answered. */
  hang(): void;
}

export class FakeDriver {
  readonly opened: Opened[] = [];
  /** The images of all that were asked for, also of those that did not start. */
  readonly asked: (string | undefined)[] = [];
  failing = false;
  #gate: Promise<void> = Promise.resolve();

  readonly contract: SandboxDriver = {
    name: 'fake',
    open: (spec, options = {}) => this.#open(spec, options),
    sweep: async () => 0,
  };

  /** No sandbox starts until it is released. */
  hold(): { release: () => void } {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#gate = promise;
    return { release: resolve };
  }

  living(): string[] {
    return this.opened.filter(({ isClosed, sandbox }) => !isClosed && !sandbox.died.aborted).map(({ sandbox }) => sandbox.id);
  }

  images(): (string | undefined)[] {
    return this.opened
      .filter(({ sandbox }) => this.living().includes(sandbox.id))
      .map(({ spec }) => spec.image)
      .sort();
  }

  async #open(spec: SandboxSpec, { signal, handedOver }: OpenOptions): Promise<Sandbox> {
    this.asked.push(spec.image);
    await this.#gate;
    signal?.throwIfAborted();
    if (this.failing) throw new Error('no machine');
    const opened = makeOpened(spec, this.opened.length);
    opened.isHandedOver = handedOver === undefined;
    handedOver?.then(() => {
      opened.isHandedOver = true;
    });
    this.opened.push(opened);
    return opened.sandbox;
  }
}

function makeOpened(spec: SandboxSpec, index: number): Opened {
  const died = new AbortController();
  let answer = async (_signal?: AbortSignal): Promise<Buffer> => Buffer.from('{}');
  const unused = async () => {
    throw new Error('not part of a fake');
  };
  const opened: Opened = {
    spec,
    isHandedOver: false,
    isClosed: false,
    die: () => died.abort(new Error('killed')),
    refuse: () => {
      answer = unused;
    },
    hang: () => {
      answer = (signal) => new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason)));
    },
    sandbox: {
      id: sandboxId.parse(`sb-1-1-${index}`),
      died: died.signal,
      ...{ runPython: unused, exec: unused, writeFile: unused, upload: unused, download: unused },
      runShell: async () => ({ end: 'exited', output: '', totalBytes: 0, cutBytes: 0, ms: 0 }),
      readFile: (_, { signal }) => answer(signal),
      [Symbol.asyncDispose]: async () => {
        opened.isClosed = true;
      },
    },
  };
  return opened;
}
