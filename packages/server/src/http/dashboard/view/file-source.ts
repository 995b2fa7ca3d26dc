// Results in JSON lines, as `submit --trajectories` writes them: a file, or all files of a folder. Each is read once for the list; a
// rollout is read again from its line when it is opened.

import { glob, open } from 'node:fs/promises';
import { join } from 'node:path';
import { type DashboardTask, RolloutError, rolloutView, trajectoryView } from '@millrace/protocol';
import { openPieces } from '../token-pieces.ts';
import type { ViewSource } from './view-source.ts';

interface FileSourceOptions {
  readonly path: string;
  readonly isFolder: boolean;
  readonly tokenizer: string | undefined;
}

interface Line {
  readonly file: string;
  readonly start: number;
  readonly length: number;
}

type AddRollout = Parameters<ViewSource['fill']>[0];

/** Throws if the file cannot be read, or the folder has no results. */
export async function openFileSource({ path, isFolder, tokenizer }: FileSourceOptions): Promise<ViewSource> {
  const files = isFolder ? (await Array.fromAsync(glob('**/*.jsonl', { cwd: path }))).sort().map((name) => join(path, name)) : [path];
  if (files.length === 0) throw new Error('the folder has no .jsonl file and no store');
  const lines = new Map<string, Line>();
  const pieces = openPieces(tokenizer);
  const read = async (id: string): Promise<Record<string, unknown>> => {
    const line = lines.get(id);
    if (line === undefined) throw new RolloutError('not-found', `${path} has no rollout ${id}`);
    await using file = await open(line.file);
    const { buffer } = await file.read(Buffer.alloc(line.length), 0, line.length, line.start);
    return JSON.parse(buffer.toString('utf8'));
  };
  return {
    title: path,
    async fill(index) {
      let skipped = 0;
      for (const file of files) skipped += await readLines(file, { index, lines });
      return skipped;
    },
    rollout: async (id) => rolloutView.parse(await read(id)),
    async trajectory(id) {
      const { success, data } = trajectoryView.safeParse((await read(id)).trajectory);
      if (!success) throw new RolloutError('not-found', `${path} has no trajectory of ${id}: it is written with submit --trajectories`);
      return data;
    },
    task: async (): Promise<DashboardTask> => {
      throw new RolloutError('not-found', 'results do not hold the task');
    },
    events: async () => [],
    pieces: ({ segments }) => pieces.read(segments.map(({ token_ids }) => token_ids)),
    async [Symbol.asyncDispose]() {},
  };
}

/** Returns the number of lines that hold no rollout. The last line of an id counts. */
async function readLines(path: string, { index, lines }: { index: AddRollout; lines: Map<string, Line> }): Promise<number> {
  await using file = await open(path);
  let [start, skipped] = [0, 0];
  for await (const text of file.readLines({ start: 0, autoClose: false })) {
    const length = Buffer.byteLength(text);
    const { success, data } = rolloutView.safeParse(toJson(text));
    if (success) {
      index.set(data);
      lines.set(data.id, { file: path, start, length });
    } else if (text.trim() !== '') skipped += 1;
    start += length + 1;
  }
  return skipped;
}

function toJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // counted as skipped
  }
}
