// The layers of one node: each preparation runs once, in whichever process comes first, and its files are shared by all that need
// the same. The least recently used go when there are too many bytes; never one that a sandbox stands on. Between processes, all of it
// holds by locks of the kernel.

import { mkdir, readdir, readFile, rename, stat, utimes, writeFile } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { readProcess } from '@millrace/executor';
import { z } from 'zod';
import { systemClock } from '../../base/clock.ts';
import { Expired } from '../../base/deadline.ts';
import { openFileLock, tryFileLock } from '../../base/file-lock.ts';
import { raceSignal } from '../../base/race.ts';
import { nameContent } from '../run-folder/make-once.ts';
import { measureTree } from '../run-folder/measure-tree.ts';
import { removeTree } from '../run-folder/run-folder.ts';
import type { Sandbox, SandboxDriver, SandboxSpec } from '../sandbox.ts';

export interface LayerCacheOptions {
  readonly driver: SandboxDriver;
  /** Layers are in `layers` below it. */
  readonly runDir: string;
  readonly maxBytes: number;
  /** Layers that were made under another one are not found: whatever of the configuration a preparation may depend on. */
  readonly salt?: string;
}

/** The layer stays as long as this is not disposed. */
export interface LayerLease extends AsyncDisposable {
  readonly folder: string;
}

export interface LayerPlan {
  readonly spec: SandboxSpec;
  /** What is prepared, as its scenario names it: with the same spec, the same key is the same preparation. */
  readonly key: string;
  prepare(sandbox: Sandbox): Promise<void>;
  readonly signal: AbortSignal;
  /** Waits for somebody else's preparation go through here: they are not the waiter's own time. */
  uncharged<T>(wait: () => Promise<T>): Promise<T>;
}

interface Held {
  readonly lock: AsyncDisposable;
  users: number;
}

type Freeze = NonNullable<SandboxDriver['freeze']>;
type Outcome = { readonly kind: 'ready' | 'given-up' } | { readonly kind: 'failed'; readonly error: unknown };

const metaFile = z.object({ bytes: z.int().min(0), pid: z.int(), startTicks: z.int() });
const namePattern = /^[0-9a-f]{16}$/;
/** However small they are. */
const maxLayers = 512;

export class LayerCache {
  readonly #options: LayerCacheOptions;
  readonly #folder: string;
  /** One lock of the kernel for all users in this process. */
  readonly #held = new Map<string, Held>();
  readonly #making = new Map<string, Promise<Outcome>>();

  constructor(options: LayerCacheOptions) {
    this.#options = options;
    this.#folder = join(resolve(options.runDir), 'layers');
  }

  /**
   * The first to come prepares, the others wait for it. What fails it fails all of them, and who comes later tries again; when the
   * first is cancelled, the next goes on in its place. Absent where the driver makes no layers.
   */
  async open(plan: LayerPlan): Promise<LayerLease | undefined> {
    const { driver } = this.#options;
    const freeze = driver.freeze?.bind(driver);
    if (freeze === undefined) return undefined;
    const name = await nameLayer(this.#options, plan);
    for (;;) {
      const held = this.#held.get(name);
      if (held) return this.#lease(name, held); // even when aborted: somebody must give back what was just made
      plan.signal.throwIfAborted();
      const others = this.#making.get(name);
      const outcome = others ? await plan.uncharged(() => raceSignal(others, plan.signal)) : await this.#begin(name, plan, freeze);
      if (outcome.kind === 'failed') throw outcome.error;
    }
  }

  /** One more lease of a layer that somebody in this process has a lease of already; else there is none to be had. */
  hold(folder: string): LayerLease | undefined {
    const name = basename(folder);
    const held = this.#held.get(name);
    return held && this.#lease(name, held);
  }

  /** Removes what dead processes were making, and what they have made unless a sandbox stands on it. */
  async sweep(): Promise<void> {
    const entries = await readdir(this.#folder).catch(() => []); // there was no layer yet
    for (const name of new Set(entries.filter((entry) => !entry.endsWith('.lock')).map((entry) => entry.slice(0, 16)))) {
      const meta = await this.#read(name);
      if (meta && readProcess(meta.pid)?.startTicks === meta.startTicks) continue;
      await this.#remove(name);
    }
  }

  #lock(name: string): string {
    return join(this.#folder, `${name}.lock`);
  }

  #lease(name: string, held: Held): LayerLease {
    held.users += 1;
    const release = async () => {
      held.users -= 1;
      if (held.users > 0) return;
      this.#held.delete(name);
      await held.lock[Symbol.asyncDispose]();
    };
    let released: Promise<void> | undefined;
    const dispose = () => {
      released ??= release();
      return released;
    };
    return { folder: join(this.#folder, name), [Symbol.asyncDispose]: dispose };
  }

  #begin(name: string, plan: LayerPlan, freeze: Freeze): Promise<Outcome> {
    const making = this.#provide(name, plan, freeze)
      .then((): Outcome => ({ kind: 'ready' }))
      .catch((error: unknown): Outcome => {
        const { aborted, reason } = plan.signal;
        // Time that was not enough for one is not enough for the next: that is a failure of all.
        return aborted && !(reason instanceof Expired) ? { kind: 'given-up' } : { kind: 'failed', error: aborted ? reason : error };
      })
      .finally(() => this.#making.delete(name));
    this.#making.set(name, making);
    return making;
  }

  /** Ends with this process holding the layer's lock. */
  async #provide(name: string, plan: LayerPlan, freeze: Freeze): Promise<void> {
    const { signal } = plan;
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    for (;;) {
      const lock = await plan.uncharged(() => openFileLock(this.#lock(name), { shared: true, signal }));
      if (await this.#touch(name)) {
        this.#held.set(name, { lock, users: 0 });
        return;
      }
      await lock[Symbol.asyncDispose]();
      await this.#make(name, plan, freeze);
      await this.#evict(name);
    }
  }

  async #make(name: string, plan: LayerPlan, freeze: Freeze): Promise<void> {
    const { spec, prepare, signal } = plan;
    await using _lock = await plan.uncharged(() => openFileLock(this.#lock(name), { signal }));
    if (await this.#read(name)) return; // another process was first
    await this.#discard(name); // what a process that died has left
    const fresh = join(this.#folder, `${name}.new`);
    try {
      await freeze(spec, { folder: fresh, prepare, signal });
      const startTicks = readProcess(process.pid)?.startTicks ?? 0;
      const meta = { bytes: await measureTree(fresh), pid: process.pid, startTicks };
      await writeFile(join(fresh, 'meta.json'), JSON.stringify(meta));
      await rename(fresh, join(this.#folder, name));
    } finally {
      await removeTree(fresh);
    }
  }

  /** The least recently used first, until the rest fits; `kept` has just been made for somebody. */
  async #evict(kept: string): Promise<void> {
    const names = (await readdir(this.#folder)).filter((name) => namePattern.test(name));
    const found = await Promise.all(names.map((name) => this.#read(name)));
    const layers = found.flatMap((layer) => layer ?? []).sort((a, b) => a.usedMs - b.usedMs);
    let bytes = layers.reduce((sum, layer) => sum + layer.bytes, 0);
    let count = layers.length;
    for (const layer of layers) {
      if (bytes <= this.#options.maxBytes && count <= maxLayers) return;
      if (layer.name === kept || this.#held.has(layer.name) || !(await this.#remove(layer.name))) continue;
      bytes -= layer.bytes;
      count -= 1;
    }
  }

  async #touch(name: string): Promise<boolean> {
    const now = new Date(systemClock.now());
    return utimes(join(this.#folder, name, 'meta.json'), now, now).then(
      () => true,
      () => false, // there is no such layer
    );
  }

  async #read(name: string) {
    const file = join(this.#folder, name, 'meta.json');
    try {
      const meta = metaFile.parse(JSON.parse(await readFile(file, 'utf8')));
      return { ...meta, name, usedMs: (await stat(file)).mtimeMs };
    } catch {
      return undefined; // there is none, or it is being removed
    }
  }

  /** Answers false when it is in use, or being made, and stays. */
  async #remove(name: string): Promise<boolean> {
    await using lock = await tryFileLock(this.#lock(name));
    if (lock === undefined) return false;
    await this.#discard(name);
    return true;
  }

  /** Out of sight first: a half-removed layer is never seen under its name. */
  async #discard(name: string): Promise<void> {
    const path = join(this.#folder, name);
    for (const left of [`${path}.new`, `${path}.gone`]) await removeTree(left);
    await rename(path, `${path}.gone`).catch(() => {}); // there is none
    await removeTree(`${path}.gone`);
  }
}

/** An image that was replaced under its name is another image. */
async function nameLayer({ driver, salt }: LayerCacheOptions, { spec, key }: LayerPlan): Promise<string> {
  const image = spec.image === undefined ? undefined : await stat(spec.image).catch(() => undefined); // not a path
  const seen = image && [image.ino, image.mtimeMs, image.size];
  const parts = [driver.name, salt, spec.image, seen, spec.network, spec.limits, Object.entries(spec.env ?? {}).sort(), key];
  return nameContent(parts);
}
