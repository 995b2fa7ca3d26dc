// The layers of one machine. Each preparation runs once, in the first process that needs it, and all sandboxes that need the same one
// share its files. When layers take too much space, the least recently used are removed, but never one in use. File locks make this hold
// across processes.

import { mkdir, readdir, readFile, rename, stat, utimes, writeFile } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { systemClock } from '@millrace/base/clock';
import { Expired, type Uncharged } from '@millrace/base/deadline';
import { openFileLock, tryFileLock } from '@millrace/base/file-lock';
import { readProcess } from '@millrace/base/processes';
import { raceSignal } from '@millrace/base/race';
import { z } from 'zod';
import { hashContent } from '../run-folder/make-once.ts';
import { measureTree } from '../run-folder/measure-tree.ts';
import { removeTree } from '../run-folder/remove-tree.ts';
import type { Sandbox, SandboxDriver, SandboxSpec } from '../sandbox.ts';

interface LayerCacheOptions {
  readonly driver: SandboxDriver;
  /** The run folder; layers are in its subfolder `layers`. */
  readonly runDir: string;
  readonly maxBytes: number;
  /** Part of every layer's name: the configuration that a preparation may depend on. */
  readonly salt?: string;
}

/** The layer is not removed until the lease is disposed. */
export interface LayerLease extends AsyncDisposable {
  readonly folder: string;
}

export interface LayerPlan {
  readonly spec: SandboxSpec;
  /** The scenario's name for the preparation: the same spec and key mean the same preparation. */
  readonly key: string;
  prepare(sandbox: Sandbox): Promise<void>;
  readonly signal: AbortSignal;
  /** Runs a wait for another rollout's preparation, which does not count against the time of this one. */
  readonly uncharged: Uncharged;
}

interface HeldLayer {
  readonly lock: AsyncDisposable;
  users: number;
}

type Freeze = NonNullable<SandboxDriver['freeze']>;
type PreparationOutcome = { readonly kind: 'ready' | 'cancelled' } | { readonly kind: 'failed'; readonly error: unknown };

const metaFile = z.object({ bytes: z.int().min(0), pid: z.int(), startTicks: z.int() });
const namePattern = /^[0-9a-f]{16}$/;
/** Regardless of their size. */
const maxLayers = 512;

export class LayerCache {
  readonly #options: LayerCacheOptions;
  readonly #folder: string;
  /** One file lock for all users in this process. */
  readonly #held = new Map<string, HeldLayer>();
  readonly #making = new Map<string, Promise<PreparationOutcome>>();

  constructor(options: LayerCacheOptions) {
    this.#options = options;
    this.#folder = join(resolve(options.runDir), 'layers');
  }

  /**
   * The first caller prepares the layer, and the others wait for it. If it fails, all of them fail, and a later caller tries again. If it
   * is cancelled, the next one takes its place. Returns undefined if the driver cannot create layers.
   */
  async open(plan: LayerPlan): Promise<LayerLease | undefined> {
    const { driver } = this.#options;
    const freeze = driver.freeze?.bind(driver);
    if (freeze === undefined) return undefined;
    const name = await nameLayer(this.#options, plan);
    for (;;) {
      const held = this.#held.get(name);
      if (held) return this.#lease(name, held); // even if aborted: the caller must release the layer that was just made
      plan.signal.throwIfAborted();
      const others = this.#making.get(name);
      const outcome = others ? await plan.uncharged(() => raceSignal(others, plan.signal)) : await this.#begin(name, plan, freeze);
      if (outcome.kind === 'failed') throw outcome.error;
    }
  }

  /** One more lease of a layer that this process already has a lease of; otherwise undefined. */
  hold(folder: string): LayerLease | undefined {
    const name = basename(folder);
    const held = this.#held.get(name);
    return held && this.#lease(name, held);
  }

  /** Removes layers that dead processes made or were making, unless a sandbox uses them. */
  async sweep(): Promise<void> {
    const entries = await readdir(this.#folder).catch(() => []); // there are no layers yet
    for (const name of new Set(entries.filter((entry) => !entry.endsWith('.lock')).map((entry) => entry.slice(0, 16)))) {
      const meta = await this.#read(name);
      if (meta && readProcess(meta.pid)?.startTicks === meta.startTicks) continue;
      await this.#remove(name);
    }
  }

  /** Shared by the users of a layer; exclusive to remove it. */
  #useLock(name: string): string {
    return join(this.#folder, `${name}.lock`);
  }

  /** Held while a layer is made. A separate lock: a process that waits for it must not wait for the users of the finished layer too. */
  #makeLock(name: string): string {
    return join(this.#folder, `${name}.make.lock`);
  }

  #lease(name: string, held: HeldLayer): LayerLease {
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

  #begin(name: string, plan: LayerPlan, freeze: Freeze): Promise<PreparationOutcome> {
    const making = this.#provide(name, plan, freeze)
      .then((): PreparationOutcome => ({ kind: 'ready' }))
      .catch((error: unknown): PreparationOutcome => {
        const { aborted, reason } = plan.signal;
        // If the time was not enough for one, it is not enough for the next: all of them fail.
        return aborted && !(reason instanceof Expired) ? { kind: 'cancelled' } : { kind: 'failed', error: aborted ? reason : error };
      })
      .finally(() => this.#making.delete(name));
    this.#making.set(name, making);
    return making;
  }

  /** When it returns, this process holds the layer's lock. */
  async #provide(name: string, plan: LayerPlan, freeze: Freeze): Promise<void> {
    const { signal } = plan;
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    for (;;) {
      const lock = await plan.uncharged(() => openFileLock(this.#useLock(name), { shared: true, signal }));
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
    await using _lock = await plan.uncharged(() => openFileLock(this.#makeLock(name), { signal }));
    if (await this.#read(name)) return; // another process was first
    await this.#discard(name); // a process that died may have left parts of it
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

  /** Removes the least recently used layers until the rest fits. `kept` was just made for a caller. */
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
      return undefined; // there is none, or another process is removing it
    }
  }

  /** Returns false, and removes nothing, if the layer is in use or being made. */
  async #remove(name: string): Promise<boolean> {
    await using making = await tryFileLock(this.#makeLock(name));
    await using unused = making && (await tryFileLock(this.#useLock(name)));
    if (unused === undefined) return false;
    await this.#discard(name);
    return true;
  }

  /** Renames first: a half-removed layer never exists under its name. */
  async #discard(name: string): Promise<void> {
    const path = join(this.#folder, name);
    for (const left of [`${path}.new`, `${path}.gone`]) await removeTree(left);
    await rename(path, `${path}.gone`).catch(() => {}); // there was none
    await removeTree(`${path}.gone`);
  }
}

/** An image that was replaced under the same name gives another layer. */
async function nameLayer({ driver, salt }: LayerCacheOptions, { spec, key }: LayerPlan): Promise<string> {
  const image = spec.image === undefined ? undefined : await stat(spec.image).catch(() => undefined); // not a path
  const seen = image && [image.ino, image.mtimeMs, image.size];
  const parts = [
    driver.name,
    salt,
    spec.image,
    seen,
    spec.network,
    spec.namespaces,
    spec.limits,
    Object.entries(spec.env ?? {}).sort(),
    key,
  ];
  return hashContent(parts);
}
