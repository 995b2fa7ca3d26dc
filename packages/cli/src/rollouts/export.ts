// `millrace export`: rollouts with their trajectories as one HTML page to send to a colleague, or as data; from a service, a store or files.

import { writeFile } from 'node:fs/promises';
import { openClient } from '@millrace/client';
import { RolloutIndex, toAtif } from '@millrace/dashboard';
import { definedOf, messageOf, RolloutError, type TrajectoryView } from '@millrace/protocol';
import { openSource, toExportedPage, type ViewSource } from '@millrace/server';
import { type Arguments, type Command, type Io, serviceOptions, toServiceAddress, UsageError } from '../command/command.ts';
import { chooseOnly, findRollout } from '../command/find-id.ts';
import { readVersion } from '../command/version.ts';
import { openLiveLine } from '../terminal/live-line.ts';
import { bar, toBytes, toCount } from '../terminal/text.ts';
import { openServiceSource } from './service-source.ts';
import { pathOptions, toPathOptions } from './view.ts';

const formats = ['html', 'json', 'atif'] as const;
type Format = (typeof formats)[number];

/** A page with more takes a browser long to open. */
const mostInPage = 500;

export const exportCommand: Command = {
  name: 'export',
  summary:
    'Writes rollouts with their trajectories as one HTML page to send to a colleague, or as JSON or ATIF. The start of an id is enough.',
  positional: '[id …]',
  options: {
    html: {
      type: 'string',
      value: 'FILE',
      describe: 'One page with all that shows them: conversation, tokens, siblings. It loads nothing.',
    },
    json: { type: 'string', value: 'FILE', describe: 'JSON lines, as `submit --trajectories` writes them. `-` is standard output.' },
    atif: { type: 'string', value: 'FILE', describe: 'JSON lines in the Agent Trajectory Interchange Format, one for each branch.' },
    from: { type: 'string', value: 'PATH', describe: 'A file or folder of results, or a store, instead of the service.' },
    group: { type: 'string', value: 'ID', describe: 'All rollouts of this group.' },
    ...pathOptions,
    ...serviceOptions,
  },
  examples: [
    'millrace export r-1234 --html r-1234.html',
    'millrace export --group task-7 --html siblings.html',
    'millrace export --from .millrace --json results.jsonl',
    'millrace export --from results.jsonl r-1234 --atif - | jq .steps',
  ],
  run: runExport,
};

async function runExport(args: Arguments, io: Io): Promise<number> {
  const asked = formats.flatMap((format) => (args.text(format) === undefined ? [] : [{ format, file: args.text(format) ?? '' }]));
  const [target, ...others] = asked;
  if (target === undefined || others.length > 0) throw new UsageError('export needs one of --html FILE, --json FILE and --atif FILE');
  await using opened = await openExportSource(args, io);
  const { source, ids } = opened;
  if (ids.length === 0) throw new UsageError('there is no such rollout to export');
  if (target.format === 'html' && ids.length > mostInPage)
    throw new UsageError(`${toCount(ids.length)} rollouts are too many for one page: name at most ${mostInPage}, or a --group`);
  const text = await render(target.format, { source, ids, io });
  if (target.file === '-') io.stdout.write(text);
  else await writeFile(target.file, text);
  io.stderr.write(
    `${toCount(ids.length)} rollouts${target.file === '-' ? '' : ` in ${target.file}, ${toBytes(Buffer.byteLength(text))}`}\n`,
  );
  return 0;
}

interface ExportSource extends AsyncDisposable {
  readonly source: ViewSource;
  /** The oldest first. */
  readonly ids: readonly string[];
}

async function openExportSource(args: Arguments, io: Io): Promise<ExportSource> {
  const [path, group, wanted] = [args.text('from'), args.text('group'), args.positionals];
  await using stack = new AsyncDisposableStack();
  if (path === undefined) {
    if (group === undefined && wanted.length === 0)
      throw new UsageError('which rollouts? Name their ids, a --group, or a path with --from');
    const address = toServiceAddress(args, io);
    const client = stack.use(openClient(address));
    const named = await Promise.all(wanted.map((id) => findRollout(client, id)));
    const siblings = group === undefined ? [] : await Array.fromAsync(client.list({ group }));
    const ids = [...named, ...siblings].map(({ id }) => id);
    return own(stack, { source: openServiceSource({ client, ...address }), ids: [...new Set(ids)] });
  }
  const source = stack.use(await openPath(path, args));
  const index = new RolloutIndex(() => performance.now());
  await source.fill(index);
  const { rows } = index.page({ ...definedOf({ group }), sort: 'created', order: 'asc', offset: 0, limit: Number.MAX_SAFE_INTEGER });
  const ids = wanted.length === 0 ? rows.map(({ id }) => id) : wanted.map((id) => findAmong(rows, id, path));
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

interface ExportRun {
  readonly source: ViewSource;
  readonly ids: readonly string[];
  readonly io: Io;
}

/** With a live line: a store may have thousands. */
async function render(format: Format, { source, ids, io }: ExportRun): Promise<string> {
  let read = 0;
  const line = openLiveLine(io, {
    render: (columns) => `▕${bar(read / ids.length, Math.max(5, Math.min(40, columns - 30)))}▏ ${toCount(read)}/${toCount(ids.length)} read`,
    renderPlain: () => `${toCount(read)}/${toCount(ids.length)} read`,
  });
  const counted: ViewSource = {
    ...source,
    rollout: async (id) => {
      const view = await source.rollout(id);
      read += 1;
      line.update();
      return view;
    },
  };
  try {
    if (format === 'html') return await toExportedPage(counted, ids);
    const lines: string[] = [];
    for (const id of ids) lines.push(...(await toLines(format, counted, id)));
    return lines.map((one) => `${one}\n`).join('');
  } finally {
    line.close();
  }
}

async function toLines(format: 'json' | 'atif', source: ViewSource, id: string): Promise<string[]> {
  const view = await source.rollout(id);
  const trajectory = await source.trajectory(id).catch(ignoreMissing);
  if (format === 'json') return [JSON.stringify({ ...view, trajectory: trajectory ?? null })];
  return trajectory === undefined ? [] : toAtif(view, trajectory, await readVersion()).map((one) => JSON.stringify(one));
}

function ignoreMissing(error: unknown): TrajectoryView | undefined {
  if (error instanceof RolloutError && error.code === 'not-found') return undefined;
  throw error;
}
