// Opens what lies at a path: files of results, a folder of them, or a store.

import { open, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { storeFile } from '@millrace/store';
import { openFileSource } from './file-source.ts';
import { openStoreSource } from './store-source.ts';
import type { ViewSource, ViewSourceOptions } from './view-source.ts';

/** Throws if nothing there can be read. The caller closes it. */
export async function openViewSource(options: ViewSourceOptions): Promise<ViewSource> {
  const { path } = options;
  const isFolder = (await stat(path)).isDirectory();
  const file = isFolder ? join(path, storeFile) : path;
  if (await isStore(file)) return await openStoreSource({ ...options, path: file });
  return await openFileSource({ ...options, isFolder });
}

const sqliteHead = 'SQLite format 3\0';

async function isStore(path: string): Promise<boolean> {
  try {
    await using file = await open(path);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(sqliteHead.length), 0, sqliteHead.length, 0);
    return buffer.toString('latin1', 0, bytesRead) === sqliteHead;
  } catch {
    return false; // reading it fails again, and says why
  }
}
