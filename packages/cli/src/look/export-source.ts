// Which rollouts a command reads, and from where: a service, a store or files; with a line that shows how far it is.

import { openClient } from '@millrace/client';
import { RolloutIndex } from '@millrace/dashboard';
import { definedOf, messageOf, RolloutError, type TrajectoryView } from '@millrace/protocol';
import { openSource, type ViewSource } from '@millrace/server';
import { type Arguments, type Io, toServiceAddress, UsageError } from '../command/command.ts';
import { chooseOnly, findRollout } from '../command/find-id.ts';
import { openLiveLine } from '../terminal/live-line.ts';
import { bar, toCount } from '../terminal/text.ts';
import { openServiceSource } from './service-source.ts';
import { toPathOptions } from './view.ts';

export interface ExportSource extends AsyncDisposable {
  readonly source: ViewSource;
  /** The oldest first. */
  readonly ids: readonly string[];
}

/** Without ids or a group, `newest` says how many are meant; otherwise that is refused. The caller closes it. */
export async function openExportSource(args: Arguments, io: Io, { newest }: { readonly newest?: number } = {}): Promise<ExportSource> {
  const [path, group, wanted] = [args.text('from'), args.text('group'), args.positionals];
  await using stack = new AsyncDisposableStack();
  if (path === undefined) {
    const isAll = group === undefined && wanted.length === 0;
    if (isAll && newest === undefined) throw new UsageError('which rollouts? Name their ids, a --group, or a path with --from');
    const address = toServiceAddress(args, io);
    const client = stack.use(openClient(address));
    const named = await Promise.all(wanted.map((id) => findRollout(client, id)));
    const listed = isAll ? { order: 'newest' as const, ...definedOf({ limit: newest }) } : definedOf({ group });
    const siblings = isAll || group !== undefined ? await Array.fromAsync(client.list(listed)) : [];
    const ids = [...named, ...siblings].map(({ id }) => id);
    return own(stack, { source: openServiceSource({ client, ...address }), ids: [...new Set(ids)] });
  }
  const source = stack.use(await openPath(path, args));
  const index = new RolloutIndex(() => performance.now());
  await source.fill(index);
  const { rows } = index.page({ ...definedOf({ group }), sort: 'created', order: 'asc', offset: 0, limit: Number.MAX_SAFE_INTEGER });
  const ids =
    wanted.length === 0 ? rows.slice(-(newest ?? rows.length)).map(({ id }) => id) : wanted.map((id) => findAmong(rows, id, path));
  return own(stack, { source, ids: [...new Set(ids)] });
}

function own(stack: AsyncDisposableStack, found: Pick<ExportSource, 'source' | 'ids'>): ExportSource {
  const owned = stack.move();
  return { ...found, [Symbol.asyncDispose]: () => owned[Symbol.asyncDispose]() };
}

async function openPath(path: string, args: Arguments): Promise<ViewSource> {
  try {
    return await openSource({ path, ...toPathOptions(args) });
  } catch (error) {
    throw new UsageError(`${path} cannot be read: ${messageOf(error)}`);
  }
}

function findAmong(rows: readonly { readonly id: string }[], id: string, path: string): string {
  if (rows.some((row) => row.id === id)) return id;
  const found = rows.filter((row) => row.id.startsWith(id));
  return chooseOnly(found, id, { what: 'rollout', where: `in ${path}` }).id;
}

interface CountedSource extends Disposable {
  readonly source: ViewSource;
}

/** Counts the rollouts that are read, on a live line: a store may have thousands. */
export function openCountedSource({ source, ids }: ExportSource, io: Io): CountedSource {
  let read = 0;
  const line = openLiveLine(io, {
    render: (columns) =>
      `▕${bar(read / ids.length, Math.max(5, Math.min(40, columns - 30)))}▏ ${toCount(read)}/${toCount(ids.length)} read`,
    renderPlain: () => `${toCount(read)}/${toCount(ids.length)} read`,
  });
  const rollout: ViewSource['rollout'] = async (id) => {
    const view = await source.rollout(id);
    read += 1;
    line.update();
    return view;
  };
  return { source: { ...source, rollout }, [Symbol.dispose]: () => line.close() };
}

/** Undefined for a rollout that has no trajectory. */
export async function readIfKept(source: ViewSource, id: string): Promise<TrajectoryView | undefined> {
  try {
    return await source.trajectory(id);
  } catch (error) {
    if (error instanceof RolloutError && error.code === 'not-found') return undefined;
    throw error;
  }
}
