// The image cache of one machine. Each image is fetched and converted once, by the first process that needs it. When the cache is too
// large, the least recently used images are removed, but never one in use. File locks make this hold across processes.

import { mkdir, readdir, readFile, rename, stat, utimes, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { systemClock } from '@millrace/base/clock';
import { openFileLock, tryFileLock } from '@millrace/base/file-lock';
import { runProgram } from '@millrace/base/run-program';
import { definedOf, messageOf, RolloutError } from '@millrace/protocol';
import { z } from 'zod';
import { measureTree } from '../run-folder/measure-tree.ts';
import { removeTree } from '../run-folder/remove-tree.ts';
import { findApptainer } from './apptainer-program.ts';
import { buildDockerfile } from './dockerfile/build.ts';
import {
  type ImageNames,
  type ImageSource,
  renderBuildArguments,
  renderBuildError,
  replaceName,
  toBaseName,
  toImageSource,
} from './image-source.ts';

interface ImageCacheOptions {
  readonly folder: string;
  readonly maxBytes: number;
  readonly apptainerPath?: string;
  /** What is used in the place of Docker images with these names. */
  readonly names?: ImageNames;
  /** Called with each line that Apptainer prints. */
  readonly onProgress?: (progress: { readonly source: string; readonly line: string }) => void;
}

/** The image is not removed until the lease is disposed. */
export interface ImageLease extends AsyncDisposable {
  readonly path: string;
}

export interface CachedImage {
  readonly key: string;
  readonly source: string;
  readonly bytes: number;
  readonly usedMs: number;
}

type BuiltSource = Exclude<ImageSource, { readonly kind: 'local' }>;

const metaFile = z.object({ source: z.string(), bytes: z.int().min(0) });
const keptChars = 8192;

export class ImageCache {
  readonly #options: ImageCacheOptions;
  readonly #folder: string;

  constructor(options: ImageCacheOptions) {
    this.#options = options;
    this.#folder = resolve(options.folder);
  }

  /** Fetches and converts the image if needed, or waits for another process that does so. `again` builds it again in any case. */
  async open(name: string, options: { readonly signal?: AbortSignal; readonly again?: boolean } = {}): Promise<ImageLease> {
    const image = await toImageSource(replaceName(name, this.#options.names));
    if (image.kind === 'local') return { path: image.path, [Symbol.asyncDispose]: async () => {} };
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    const { key } = image;
    for (let again = options.again ?? false; ; again = false) {
      const lease = again ? undefined : await this.#lease(key, options.signal);
      if (lease) return lease;
      await this.#make(image, definedOf({ again, signal: options.signal }));
      await this.#evict(key);
    }
  }

  async list(): Promise<CachedImage[]> {
    const names = await readdir(this.#folder).catch(() => []);
    const images = await Promise.all(names.filter((name) => /^[0-9a-f]{16}$/.test(name)).map((key) => this.#read(key)));
    return images.flatMap((image) => image ?? []).sort((a, b) => b.usedMs - a.usedMs);
  }

  /** Returns false, and removes nothing, if the image is in use. */
  async remove(key: string): Promise<boolean> {
    await using making = await tryFileLock(this.#makeLock(key));
    await using unused = making && (await tryFileLock(this.#useLock(key)));
    if (unused === undefined) return false;
    await this.#discard(key);
    return true;
  }

  /** Shared by the users of an image; exclusive to remove it. */
  #useLock(key: string): string {
    return join(this.#folder, `${key}.lock`);
  }

  /** Held while an image is built. A separate lock: a process that waits for it must not wait for the users of the finished image too. */
  #makeLock(key: string): string {
    return join(this.#folder, `${key}.make.lock`);
  }

  async #lease(key: string, signal: AbortSignal | undefined): Promise<ImageLease | undefined> {
    const lock = await openFileLock(this.#useLock(key), definedOf({ shared: true, signal }));
    const path = join(this.#folder, key, 'image');
    if (await stat(path).catch(() => undefined)) {
      const now = new Date(systemClock.now());
      await utimes(join(this.#folder, key, 'meta.json'), now, now);
      return { path, [Symbol.asyncDispose]: () => lock[Symbol.asyncDispose]() };
    }
    await lock[Symbol.asyncDispose]();
    return undefined;
  }

  async #make({ key, source, kind }: BuiltSource, options: { readonly signal?: AbortSignal; readonly again: boolean }): Promise<void> {
    await using _making = await openFileLock(this.#makeLock(key), options);
    const [folder, fresh] = [join(this.#folder, key), join(this.#folder, `${key}.new`)];
    if (!options.again && (await stat(folder).catch(() => undefined))) return; // another process was first
    await removeTree(fresh); // a process that died may have left it
    await mkdir(fresh);
    try {
      if (kind === 'dockerfile') await this.#buildDockerfile(source, fresh, options.signal);
      else await this.#build(source, fresh, options.signal);
      const meta = { source, bytes: await measureTree(join(fresh, 'image')) };
      await removeTree(join(fresh, 'tmp'));
      await writeFile(join(fresh, 'meta.json'), JSON.stringify(meta));
      await using _unused = options.again ? await openFileLock(this.#useLock(key), options) : undefined;
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
    let output = '';
    const onText = (text: string) => {
      output = (output + text).slice(-keptChars);
      for (const line of text.split('\n')) if (line.trim() !== '') this.#options.onProgress?.({ source, line: line.trim() });
    };
    await runProgram([file, ...renderBuildArguments(source, join(fresh, 'image'))], { env, signal, onText }).catch((error) => {
      signal?.throwIfAborted();
      throw new RolloutError('sandbox-start-failed', renderBuildError(source, output || messageOf(error)), { cause: error });
    });
  }

  async #buildDockerfile(path: string, fresh: string, signal: AbortSignal | undefined): Promise<void> {
    const scratch = join(fresh, 'tmp');
    await mkdir(scratch);
    const onText = (text: string) => {
      for (const line of text.split('\n')) if (line.trim() !== '') this.#options.onProgress?.({ source: path, line: line.trim() });
    };
    await buildDockerfile({
      path,
      target: join(fresh, 'image'),
      scratch,
      apptainerPath: this.#options.apptainerPath ?? findApptainer() ?? 'apptainer',
      openBase: (name) => this.open(toBaseName(name, path), definedOf({ signal })),
      signal,
      onText,
    });
  }

  /** Removes the least recently used images until the rest fits. `kept` was just built for a caller. */
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
      return undefined; // another process is removing it
    }
  }

  /** Renames first: a half-removed image never exists under its key. */
  async #discard(key: string): Promise<void> {
    const gone = join(this.#folder, `${key}.gone`);
    await removeTree(gone);
    await rename(join(this.#folder, key), gone).catch(() => {}); // there was none
    await removeTree(gone);
  }
}
