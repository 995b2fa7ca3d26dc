// The dashboard on a file of results, without a service: the same pages and the same routes, for this machine only. The file is read once
// for the list; a trajectory is read again from its line when it is opened.

import { type FileHandle, open } from 'node:fs/promises';
import { findParts } from '@millrace/base/parts';
import {
  dashboardRoutes,
  RolloutError,
  type RolloutView,
  rolloutView,
  routes,
  type TrajectoryView,
  trajectoryView,
} from '@millrace/protocol';
import fastify, { type FastifyInstance } from 'fastify';
import { openGuard } from '../request/auth.ts';
import { sendError } from '../request/errors.ts';
import { mount } from '../request/mount.ts';
import { RolloutIndex } from './rollout-index.ts';
import { mountStaticFiles } from './static-files.ts';
import { openPieces } from './token-pieces.ts';

export interface FileViewer extends AsyncDisposable {
  readonly url: string;
  readonly rollouts: number;
  /** Lines that hold no rollout. */
  readonly skipped: number;
}

export interface FileViewerOptions {
  readonly file: string;
  readonly port: number;
  /** The folder of the model, for the text of single tokens. */
  readonly tokenizer: string | undefined;
}

interface Line {
  readonly start: number;
  readonly length: number;
}

/** Throws if the file cannot be read. */
export async function openFileViewer({ file, port, tokenizer }: FileViewerOptions): Promise<FileViewer> {
  await using stack = new AsyncDisposableStack();
  const handle = stack.adopt(await open(file), (opened) => opened.close());
  const index = new RolloutIndex(() => performance.now());
  const lines = new Map<string, Line>();
  const skipped = await readLines(handle, { index, lines });
  const app = fastify({ logger: false });
  stack.defer(() => app.close());
  const guard = openGuard({ keys: [], submitKeys: [], readKeys: [], workerKeys: [] });
  app.addHook('onRequest', async (request) => guard(request));
  app.setErrorHandler((error, _request, reply) =>
    sendError(reply, error instanceof RolloutError ? error : new RolloutError('internal', String(error))),
  );
  await mountStaticFiles(app, findParts().dashboard);
  mountFile(app, { handle, index, lines, title: file, tokenizer });
  const url = await app.listen({ host: '127.0.0.1', port });
  const owned = stack.move();
  return { url, rollouts: index.size, skipped, [Symbol.asyncDispose]: () => owned[Symbol.asyncDispose]() };
}

interface OpenedFile {
  readonly handle: FileHandle;
  readonly index: RolloutIndex;
  readonly lines: ReadonlyMap<string, Line>;
  readonly title: string;
  readonly tokenizer: string | undefined;
}

function mountFile(app: FastifyInstance, { handle, index, lines, title, tokenizer }: OpenedFile): void {
  const pieces = openPieces(tokenizer);
  const read = async (id: string): Promise<Record<string, unknown>> => {
    const line = lines.get(id);
    if (line === undefined) throw new RolloutError('not-found', `the file has no rollout ${id}`);
    const { buffer } = await handle.read(Buffer.alloc(line.length), 0, line.length, line.start);
    return JSON.parse(buffer.toString('utf8'));
  };
  const readTrajectory = async (id: string): Promise<TrajectoryView> => {
    const { success, data } = trajectoryView.safeParse((await read(id)).trajectory);
    if (!success) throw new RolloutError('not-found', `the file has no trajectory of ${id}: it is written with submit --trajectories`);
    return data;
  };
  mount(app, dashboardRoutes.session, () => ({ right: 'read', live: false, title }));
  mount(app, dashboardRoutes.rollouts, ({ query }) => index.page(query));
  mount(app, dashboardRoutes.summary, () => index.summary());
  mount(app, dashboardRoutes.events, () => ({ events: [] }));
  mount(app, dashboardRoutes.task, () => {
    throw new RolloutError('not-found', 'results do not hold the task');
  });
  mount(app, dashboardRoutes.pieces, async ({ params: { id } }) => {
    const { segments } = await readTrajectory(id);
    return pieces.read({ segments: segments.map(({ token_ids }) => ({ tokenIds: Int32Array.from(token_ids) })) });
  });
  mount(app, routes.getRollout, async ({ params: { id } }): Promise<RolloutView> => rolloutView.parse(await read(id)));
  mount(app, routes.getTrajectory, ({ params: { id } }) => readTrajectory(id));
}

/** Returns the number of lines that hold no rollout. The last line of an id counts. */
async function readLines(handle: FileHandle, { index, lines }: { index: RolloutIndex; lines: Map<string, Line> }): Promise<number> {
  let [start, skipped] = [0, 0];
  for await (const text of handle.readLines({ start: 0, autoClose: false })) {
    const length = Buffer.byteLength(text);
    const { success, data } = rolloutView.safeParse(toJson(text));
    if (success) {
      index.set(data);
      lines.set(data.id, { start, length });
    } else if (text.trim() !== '') skipped += 1;
    start += length + 1;
  }
  index.markComplete();
  return skipped;
}

function toJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // counted as skipped
  }
}
