// Blobs as files in a folder, which may be on a network file system. A file gets its name once all of its bytes are on the disk.

import { randomUUID } from 'node:crypto';
import { mkdir, open, opendir, readFile, rename, rm, stat, statfs } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { type BlobEntry, type BlobStore, checkKey } from './blob-store.ts';

export function openFolderBlobs(folder: string): BlobStore {
  const toPath = (key: string) => {
    checkKey(key);
    return join(folder, key);
  };
  return {
    name: `folder:${folder}`,
    async put(key, bytes) {
      const path = toPath(key);
      await mkdir(dirname(path), { recursive: true, mode: 0o700 });
      const partial = `${path}.${randomUUID()}.partial`;
      try {
        await writeDurably(partial, bytes);
        await rename(partial, path);
      } catch (error) {
        await rm(partial, { force: true });
        throw error;
      }
      await syncFolder(dirname(path));
    },
    async get(key) {
      return await orAbsent(readFile(toPath(key)));
    },
    async delete(keys) {
      await Promise.all(keys.map((key) => rm(toPath(key), { force: true })));
    },
    list: (prefix) => listFiles(folder, prefix),
    async freeBytes() {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      const { bavail, bsize } = await statfs(folder);
      return bavail * bsize;
    },
  };
}

async function writeDurably(path: string, bytes: Uint8Array): Promise<void> {
  await using file = await open(path, 'wx', 0o600);
  await file.writeFile(bytes);
  await file.sync();
}

async function syncFolder(path: string): Promise<void> {
  await using folder = await open(path, 'r');
  await folder.sync();
}

async function* listFiles(folder: string, prefix: string): AsyncGenerator<BlobEntry> {
  // A prefix ends anywhere in a name, so its folder is read and compared.
  const start = prefix.includes('/') ? join(folder, prefix.slice(0, prefix.lastIndexOf('/'))) : folder;
  const entries = await orAbsent(opendir(start, { recursive: true }));
  if (entries === undefined) return;
  for await (const entry of entries) {
    const path = join(entry.parentPath, entry.name);
    const key = relative(folder, path);
    if (!entry.isFile() || !key.startsWith(prefix)) continue;
    const found = await orAbsent(stat(path));
    if (found) yield { key, bytes: found.size, changedAtMs: found.mtimeMs };
  }
}

async function orAbsent<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    // EISDIR: it is the first part of other keys.
    if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'EISDIR')) return undefined;
    throw error;
  }
}
