// The image cache of one node: every image is fetched and converted once, by whichever process comes first, and the least recently used
// go when the cache is too large; never one that is in use. All of it holds between processes, by locks of the kernel.

import { mkdir, readdir, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { messageOf, RolloutError } from '@millrace/protocol';
import { z } from 'zod';
import { systemClock } from '../../base/clock.ts';
import { openFileLock, tryFileLock } from '../../base/file-lock.ts';
import { runProgram } from '../../base/run-program.ts';
import { measureTree } from '../run-folder/measure-tree.ts';
import { removeTree } from '../run-folder/run-folder.ts';
import { findApptainer } from './apptainer-program.ts';
import { renderBuildArguments, renderBuildError, toImageSource } from './image-source.ts';

export interface ImageCacheOptions {
  readonly folder: string;
  readonly maxBytes: number;
  readonly apptainerPath?: string;
  /** What Apptainer says while it works, line by line. */
  readonly onProgress?: (progress: { readonly source: string; readonly line: string }) => void;
}

/** The image stays as long as this is not disposed. */
export interface ImageLease extends AsyncDisposable {
  readonly path: string;
}

export interface CachedImage {
  readonly key: string;
  readonly source: string;
  readonly bytes: number;
  readonly usedMs: number;
}

const metaFile = z.object({ source: z.string(), bytes: z.int().min(0) });
const keptChars = 8192;

export class ImageCache {
  readonly #options: ImageCacheOptions;
  readonly #folder: string;

  constructor(options: ImageCacheOptions) {
    this.#options = options;
    this.#folder = resolve(options.folder);
  }

  /** Fetches and converts the image unless that is done; waits for another process that does. `again` makes it anew. */
  async open(name: string, options: { readonly signal?: AbortSignal; readonly again?: boolean } = {}): Promise<ImageLease> {
    const image = await toImageSource(name);
    if (image.kind === 'local') return { path: image.path, [Symbol.asyncDispose]: async () => {} };
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    const { key, source } = image;
    for (let again = options.again ?? false; ; again = false) {
      const lease = again ? undefined : await this.#lease(key, options.signal);
      if (lease) return lease;
      await this.#make(key, source, { again, ...(options.signal === undefined ? {} : { signal: options.signal }) });
      await this.#evict(key);
    }
  }

  async list(): Promise<CachedImage[]> {
    const names = await readdir(this.#folder).catch(() => []);
    const images = await Promise.all(names.filter((name) => /^[0-9a-f]{16}$/.test(name)).map((key) => this.#read(key)));
    return images.flatMap((image) => image ?? []).sort((a, b) => b.usedMs - a.usedMs);
  }

  /** Answers false when it is in use, and stays. */
  async remove(key: string): Promise<boolean> {
    await using lock = await tryFileLock(this.#lock(key));
    if (lock === undefined) return false;
    await this.#discard(key);
    return true;
  }

  #lock(key: string): string {
    return join(this.#folder, `${key}.lock`);
  }

  async #lease(key: string, signal: AbortSignal | undefined): Promise<ImageLease | undefined> {
    const lock = await openFileLock(this.#lock(key), { shared: true, ...(signal === undefined ? {} : { signal }) });
    const path = join(this.#folder, key, 'image');
    if (await stat(path).catch(() => undefined)) {
      const now = new Date(systemClock.now());
      await utimes(join(this.#folder, key, 'meta.json'), now, now);
      return { path, [Symbol.asyncDispose]: () => lock[Symbol.asyncDispose]() };
    }
    await lock[Symbol.asyncDispose]();
    return undefined;
  }

  async #make(key: string, source: string, options: { readonly signal?: AbortSignal; readonly again: boolean }): Promise<void> {
    await using _lock = await openFileLock(this.#lock(key), options);
    const [folder, fresh] = [join(this.#folder, key), join(this.#folder, `${key}.new`)];
    if (!options.again && (await stat(folder).catch(() => undefined))) return; // another process was first
    await removeTree(fresh); // what a process that died has left
    await mkdir(fresh);
    try {
      await this.#build(source, fresh, options.signal);
      const meta = { source, bytes: await measureTree(join(fresh, 'image')) };
      await rm(join(fresh, 'tmp'), { recursive: true, force: true });
      await writeFile(join(fresh, 'meta.json'), JSON.stringify(meta));
      await this.#discard(key);
      await rename(fresh, folder);
    } finally {
      await removeTree(fresh);
    }
  }

  async #build(source: string, fresh: string, signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted();
    await mkdir(join(fresh, 'tmp'));
    const file = this.#options.apptainerPath ?? findApptainer() ?? 'apptainer';
    const env = { ...process.env, APPTAINER_TMPDIR: join(fresh, 'tmp'), APPTAINER_DISABLE_CACHE: '1' };
    let said = '';
    const onText = (text: string) => {
      said = (said + text).slice(-keptChars);
      for (const line of text.split('\n')) if (line.trim() !== '') this.#options.onProgress?.({ source, line: line.trim() });
    };
    await runProgram([file, ...renderBuildArguments(source, join(fresh, 'image'))], { env, signal, onText }).catch((error) => {
      signal?.throwIfAborted();
      throw new RolloutError('sandbox-start-failed', renderBuildError(source, said || messageOf(error)), { cause: error });
    });
  }

  /** The least recently used first, until the rest fits; `kept` has just been made for somebody. */
  async #evict(kept: string): Promise<void> {
    const images = await this.list();
    let bytes = images.reduce((sum, image) => sum + image.bytes, 0);
    for (const image of images.reverse()) {
      if (bytes <= this.#options.maxBytes) return;
      if (image.key !== kept && (await this.remove(image.key))) bytes -= image.bytes;
    }
  }

  async #read(key: string): Promise<CachedImage | undefined> {
    const file = join(this.#folder, key, 'meta.json');
    try {
      const { source, bytes } = metaFile.parse(JSON.parse(await readFile(file, 'utf8')));
      return { key, source, bytes, usedMs: (await stat(file)).mtimeMs };
    } catch {
      return undefined; // it is being removed
    }
  }

  /** Out of sight first: a half-removed image is never seen under its key. */
  async #discard(key: string): Promise<void> {
    const gone = join(this.#folder, `${key}.gone`);
    await removeTree(gone);
    await rename(join(this.#folder, key), gone).catch(() => {}); // there is none
    await removeTree(gone);
  }
}
