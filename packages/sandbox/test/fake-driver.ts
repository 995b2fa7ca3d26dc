// A fake driver. Its sandboxes run nothing; tests control when they start, reply to probes and die.

import { sandboxId } from '@millrace/protocol';
import type { OpenOptions, Sandbox, SandboxDriver, SandboxSpec } from '../src/sandbox.ts';

interface FakeSandbox {
  readonly sandbox: Sandbox;
  readonly spec: SandboxSpec;
  isHandedOver: boolean;
  isClosed: boolean;
  die(): void;
  /** Makes probes fail. */
  refuse(): void;
  /** Makes probes hang. */
  hang(): void;
}

export class FakeDriver {
  readonly opened: FakeSandbox[] = [];
  /** The images of all sandboxes requested, including those that did not start. */
  readonly asked: (string | undefined)[] = [];
  failing = false;
  #gate: Promise<void> = Promise.resolve();

  readonly contract: SandboxDriver = {
    name: 'fake',
    open: (spec, options = {}) => this.#open(spec, options),
    sweep: async () => 0,
  };

  /** No sandbox starts until the hold is released. */
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

function makeOpened(spec: SandboxSpec, index: number): FakeSandbox {
  const died = new AbortController();
  let answer = async (_signal?: AbortSignal): Promise<Buffer> => Buffer.from('{}');
  const unused = async () => {
    throw new Error('not part of a fake');
  };
  const opened: FakeSandbox = {
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
      readUse: () => ({ cpuMs: 0, isBusy: false, ownOomKills: 0, foreignOomKills: 0 }),
      ...{ runPython: unused, exec: unused, openProgram: unused, writeFile: unused, readFolder: unused, upload: unused, download: unused },
      ...{ copyFile: unused, makeFolder: unused, listen: unused },
      runShell: async () => ({ end: 'exited', output: '', totalBytes: 0, cutBytes: 0, ms: 0 }),
      readFile: (_, { signal }) => answer(signal),
      [Symbol.asyncDispose]: async () => {
        opened.isClosed = true;
      },
    },
  };
  return opened;
}
