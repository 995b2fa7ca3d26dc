// The checkpoints of a machine, on the disk of its run folder: they outlive the worker that wrote them, and the next worker that runs the
// rollout finds them. Each has a checksum of its own, so one that is torn or was changed is none.

import { createHash, webcrypto } from 'node:crypto';
import { copyFile, mkdir, open, readdir, readFile, rename, rm, stat, statfs } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { z } from 'zod';
import { hashContent } from '../run-folder/make-once.ts';
import { removeTree } from '../run-folder/remove-tree.ts';
import type { Checkpoint } from './checkpoint.ts';

interface ShelfOptions {
  /** The run folder; checkpoints are in its subfolder `checkpoints`. */
  readonly runDir: string;
  /** For all checkpoints of the machine together. */
  readonly maxBytes: number;
  /** A folder that all machines see, for checkpoints that another one may need. */
  readonly shared?: string;
}

const head = z.object({ rollout: z.string(), cwd: z.string(), memory: z.string(), sha256: z.string() });
const idPattern = /^[0-9a-f-]{36}$/;
/** The disk keeps at least this share of its space free. */
const leastFree = 0.05;
/** The shared folder is swept by each machine once in this many sweeps of its own. */
const sharedSweeps = 30;

export class CheckpointShelf {
  readonly #folder: string;
  readonly #maxBytes: number;
  readonly #shared: string | undefined;
  #sweeps = 0;
  #isFull = false;

  constructor({ runDir, maxBytes, shared }: ShelfOptions) {
    this.#folder = join(resolve(runDir), 'checkpoints');
    this.#maxBytes = maxBytes;
    this.#shared = shared === undefined ? undefined : resolve(shared);
  }

  /** Whether there was no room for more when it was last looked at. */
  get isFull(): boolean {
    return this.#isFull;
  }

  async save(rollout: string, id: string, { cwd, archive, memory = '' }: Checkpoint): Promise<void> {
    const folder = this.#folderOf(rollout);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const sha256 = await digest(cwd, memory, archive);
    const path = join(folder, id);
    const first = Buffer.from(`${JSON.stringify({ rollout, cwd, memory, sha256 })}\n`);
    {
      await using file = await open(`${path}.part`, 'w', 0o600);
      await file.writeFile(first);
      await file.writeFile(archive);
    }
    await rename(`${path}.part`, path);
  }

  /** For any machine, if they share a folder. Only it and the one before it stay there, unless all do. */
  async share(rollout: string, id: string, { keepsAll }: { readonly keepsAll: boolean }): Promise<void> {
    if (this.#shared === undefined) return;
    const folder = join(this.#shared, hashContent(rollout));
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const path = join(folder, id);
    const before = keepsAll ? [] : await this.#listByAge(folder);
    await copyFile(join(this.#folderOf(rollout), id), `${path}.part`);
    await rename(`${path}.part`, path);
    for (const old of before.slice(0, -1)) if (old !== id) await rm(join(folder, old), { force: true });
  }

  async #listByAge(folder: string): Promise<string[]> {
    const names = await readNames(folder);
    const aged = await Promise.all(names.map(async (name) => ({ name, found: await stat(join(folder, name)).catch(() => undefined) })));
    return aged.sort((a, b) => (a.found?.mtimeMs ?? 0) - (b.found?.mtimeMs ?? 0)).map(({ name }) => name);
  }

  /** Undefined if it is not here, or not whole. */
  async load(rollout: string, id: string): Promise<Checkpoint | undefined> {
    if (!idPattern.test(id)) return undefined;
    const own = await readCheckpoint(join(this.#folderOf(rollout), id), rollout);
    if (own || this.#shared === undefined) return own;
    return await readCheckpoint(join(this.#shared, hashContent(rollout), id), rollout);
  }

  async drop(rollout: string, id: string): Promise<void> {
    await rm(join(this.#folderOf(rollout), id), { force: true });
  }

  /** All checkpoints of a rollout. */
  async remove(rollout: string): Promise<void> {
    await removeTree(this.#folderOf(rollout));
    if (this.#shared !== undefined) await removeTree(join(this.#shared, hashContent(rollout)));
  }

  /** Removes the checkpoints of rollouts that have ended, and the oldest ones until the rest fits. */
  async sweep(hasEnded: (rollout: string) => Promise<boolean>, olderThanMs: number): Promise<void> {
    const bytes = await this.#sweepFolder(this.#folder, hasEnded, olderThanMs);
    if (this.#shared !== undefined && this.#sweeps++ % sharedSweeps === 0) await this.#sweepFolder(this.#shared, hasEnded, olderThanMs);
    const disk = await statfs(this.#folder).catch(() => undefined); // there are no checkpoints yet
    this.#isFull = bytes > 0.9 * this.#maxBytes || (disk !== undefined && disk.bavail < leastFree * disk.blocks);
  }

  async #sweepFolder(folder: string, hasEnded: (rollout: string) => Promise<boolean>, olderThanMs: number): Promise<number> {
    const found = (await Promise.all((await readNames(folder)).map((name) => this.#measure(folder, name)))).flatMap((one) => one ?? []);
    let bytes = found.reduce((sum, one) => sum + one.bytes, 0);
    for (const one of found.sort((a, b) => a.changedMs - b.changedMs)) {
      const isOver = bytes > this.#maxBytes;
      const isOld = one.changedMs < olderThanMs && (one.rollout === undefined || (await hasEnded(one.rollout)));
      if (!isOver && !isOld) continue;
      await removeTree(join(folder, one.name));
      bytes -= one.bytes;
    }
    return bytes;
  }

  async #measure(parent: string, name: string) {
    const folder = join(parent, name);
    const files = await Promise.all(
      (await readNames(folder)).map(async (file) => ({ file, found: await stat(join(folder, file)).catch(() => undefined) })),
    );
    const changedMs = Math.max(0, ...files.map(({ found }) => found?.mtimeMs ?? 0));
    const bytes = files.reduce((sum, { found }) => sum + (found?.size ?? 0), 0);
    return {
      name,
      changedMs,
      bytes,
      rollout: await this.#readOwner(
        folder,
        files.map(({ file }) => file),
      ),
    };
  }

  async #readOwner(folder: string, files: readonly string[]): Promise<string | undefined> {
    const file = files.find((name) => idPattern.test(name));
    if (file === undefined) return undefined;
    const text = await readFile(join(folder, file), { encoding: 'latin1' }).catch(() => ''); // it was just removed
    const parsed = head.safeParse(tryParse(text.slice(0, text.indexOf('\n'))));
    return parsed.success ? parsed.data.rollout : undefined;
  }

  #folderOf(rollout: string): string {
    return join(this.#folder, hashContent(rollout));
  }
}

async function readCheckpoint(path: string, rollout: string): Promise<Checkpoint | undefined> {
  try {
    const bytes = await readFile(path);
    const end = bytes.indexOf(0x0a);
    const { cwd, memory, sha256, rollout: owner } = head.parse(JSON.parse(bytes.toString('utf8', 0, end)));
    const archive = bytes.subarray(end + 1);
    const isWhole = owner === rollout && (await digest(cwd, memory, archive)) === sha256;
    return isWhole ? { cwd, memory, archive } : undefined;
  } catch {
    return undefined; // there is none, or what is left of one
  }
}

/** In a thread: an archive is large. */
async function digest(cwd: string, memory: string, archive: Buffer): Promise<string> {
  const ofArchive = await webcrypto.subtle.digest('SHA-256', archive);
  const all = JSON.stringify([cwd, memory, Buffer.from(ofArchive).toString('hex')]);
  return createHash('sha256').update(all).digest('hex');
}

function tryParse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // a file of something else
  }
}

async function readNames(folder: string): Promise<string[]> {
  return await readdir(folder).catch(() => []); // there is none
}
