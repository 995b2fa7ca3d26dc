// Where a viewer without a service reads: files of results, a folder of them, or a store. Chosen by what lies at the path.

import { open, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { RolloutIndex } from '@millrace/dashboard';
import type { DashboardTask, Event, RolloutView, TokenPieces, TrajectoryView } from '@millrace/protocol';
import { storeFile } from '@millrace/store';
import { openFileSource } from './file-source.ts';
import { openStoreSource } from './store-source.ts';

export interface ViewSource extends AsyncDisposable {
  readonly title: string;
  /** Adds every rollout, the oldest first. Returns how many lines hold none. */
  fill(index: RolloutIndex): Promise<number>;
  /** These throw `not-found` for what is not there. */
  rollout(id: string): Promise<RolloutView>;
  trajectory(id: string): Promise<TrajectoryView>;
  task(id: string): Promise<DashboardTask>;
  events(id: string): Promise<Event[]>;
  /** The text of each token of a trajectory that was read here. */
  pieces(trajectory: TrajectoryView): Promise<TokenPieces>;
}

export interface ViewSourceOptions {
  readonly path: string;
  /** The folder of the model, for the text of single tokens. */
  readonly tokenizer: string | undefined;
  /** Where the trajectories of a store are, as `store.blobs` names it. */
  readonly blobs: string;
}

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
    return false; // whoever reads it next says why it cannot be read
  }
}
