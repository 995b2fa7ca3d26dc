// Backends that are stopped and started again as other ones: another version, model or mode of logprobs on the same port. What a server is
// made of decides its logprobs, so a record that names another one cannot have the right ones.

import { setTimeout as pause } from 'node:timers/promises';
import type { Client } from '@millrace/client';
import type { Dialect } from '@millrace/protocol';
import { FakeBackend, type FakeBackendOptions, type FakeTokens } from '@millrace/testkit';

const versions = ['0.27.1', '0.31.0', '0.32.0'];
const models = ['small', 'large'];

export interface ServerKind {
  readonly version: string;
  readonly model: string;
  readonly isProcessed: boolean;
}

/** A number of the model and the version, which is part of every logprob. */
export function toWeights(model: string, version: string): number {
  return 1 + models.indexOf(model) * versions.length + versions.indexOf(version);
}

interface SwapCounts {
  idle: number;
  busy: number;
  /** Restarts as the very same. */
  same: number;
  models: number;
  modes: number;
  versions: number;
}

export class SwappedBackends implements AsyncDisposable {
  readonly swaps: SwapCounts = { idle: 0, busy: 0, same: 0, models: 0, modes: 0, versions: 0 };
  readonly #servers = new Map<string, { dialect: Dialect; kind: ServerKind; fake: FakeBackend }>();
  readonly #tokens: FakeTokens;
  readonly #random: () => number;

  constructor(tokens: FakeTokens, random: () => number) {
    this.#tokens = tokens;
    this.#random = random;
  }

  /** What each was when it joined. */
  readonly first = new Map<string, ServerKind>();

  async open(id: string, dialect: Dialect, client: Client): Promise<void> {
    const kind = { version: versions[0] ?? '', model: models[0] ?? '', isProcessed: this.#modeOf(dialect) ?? true };
    this.#servers.set(id, { dialect, kind, fake: await this.#start(dialect, kind, 0) });
    this.first.set(id, kind);
    await this.#join(id, client);
  }

  /** Stops one of them at once or with an error to each call, and starts it as another. A new model is joined again, as an operator does. */
  async swapOne(client: Client): Promise<void> {
    const ids = [...this.#servers.keys()];
    const id = ids[Math.floor(this.#random() * ids.length)] ?? '';
    const server = this.#servers.get(id);
    if (!server) return;
    const { dialect, kind: old, fake } = server;
    const port = Number(new URL(fake.url).port);
    this.swaps[fake.inFlight > 0 ? 'busy' : 'idle'] += 1;
    if (this.#random() < 0.5) await fake.crash();
    else await fake[Symbol.asyncDispose]();
    if (this.#random() < 0.3) await pause(1500 * this.#random());
    const kind = this.#chooseKind(dialect, old);
    this.#servers.set(id, { dialect, kind, fake: await this.#start(dialect, kind, port) });
    this.#count(old, kind);
    if (kind.model === old.model) return;
    await pause(1000 * this.#random());
    await this.#join(id, client);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { fake } of this.#servers.values()) await fake[Symbol.asyncDispose]();
  }

  #chooseKind(dialect: Dialect, old: ServerKind): ServerKind {
    const pick = (all: readonly string[]) => all[Math.floor(this.#random() * all.length)] ?? '';
    if (this.#random() < 0.2) return old;
    const isProcessed = this.#modeOf(dialect) ?? this.#random() < 0.5;
    return { version: pick(versions), model: this.#random() < 0.25 ? pick(models) : old.model, isProcessed };
  }

  #count(old: ServerKind, kind: ServerKind): void {
    if (old === kind) this.swaps.same += 1;
    if (old.model !== kind.model) this.swaps.models += 1;
    if (old.isProcessed !== kind.isProcessed) this.swaps.modes += 1;
    if (old.version !== kind.version) this.swaps.versions += 1;
  }

  /** Only vLLM has a choice. */
  #modeOf(dialect: Dialect): boolean | undefined {
    return dialect === 'sglang' ? true : dialect === 'llamacpp' ? false : undefined;
  }

  async #start(dialect: Dialect, kind: ServerKind, port: number): Promise<FakeBackend> {
    const { version, model, isProcessed } = kind;
    const options: FakeBackendOptions = {
      ...{ port, version, model, isProcessed, weights: toWeights(model, version), tokenMs: 10 },
      policy: ({ promptIds: { length } }) => ({
        text: `The answer to ${length} tokens is some number, and it is written as \\boxed{${length}}.`,
      }),
      engine: dialect === 'sglang' ? 'sglang' : dialect === 'llamacpp' ? 'llamacpp' : 'vllm',
      ...(dialect === 'vllm-completions' ? { withoutGenerate: 404 } : {}),
    };
    const fake = new FakeBackend(options, this.#tokens);
    for (;;) {
      try {
        await fake.listen();
        return fake;
      } catch (error) {
        // A connection that is still closing may hold the port for a moment.
        if (!(error instanceof Error && 'code' in error && error.code === 'EADDRINUSE')) throw error;
        await pause(20);
      }
    }
  }

  async #join(id: string, client: Client): Promise<void> {
    const server = this.#servers.get(id);
    if (server) await client.backends.join({ id, url: server.fake.url, dialect: server.dialect });
  }
}
