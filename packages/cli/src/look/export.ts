// `millrace export`: rollouts with their trajectories as one HTML page to send to a colleague, or as data; from a service, a store or files.

import { once } from 'node:events';
import { open } from 'node:fs/promises';
import { readVersion } from '@millrace/base/version';
import { toAtif } from '@millrace/dashboard';
import { toExportedPage, type ViewSource } from '@millrace/server';
import { type Arguments, type Command, type Io, serviceOptions, UsageError } from '../command/command.ts';
import { toBytes, toCount } from '../terminal/text.ts';
import { type ExportSource, openCountedSource, openExportSource, readIfKept } from './export-source.ts';
import { pathOptions } from './view.ts';

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
  const { ids } = opened;
  if (ids.length === 0) throw new UsageError('there is no such rollout to export');
  if (target.format === 'html' && ids.length > mostInPage)
    throw new UsageError(`${toCount(ids.length)} rollouts are too many for one page: name at most ${mostInPage}, or a --group`);
  const bytes = await write(toTexts(target.format, { opened, io }), target.file, io);
  io.stderr.write(`${toCount(ids.length)} rollouts${target.file === '-' ? '' : ` in ${target.file}, ${toBytes(bytes)}`}\n`);
  return 0;
}

/** Piece by piece: what a store holds does not fit in memory. Returns the number of bytes. */
async function write(texts: AsyncIterable<string>, file: string, io: Io): Promise<number> {
  let bytes = 0;
  await using opened = file === '-' ? undefined : await open(file, 'w');
  for await (const text of texts) {
    bytes += Buffer.byteLength(text);
    if (opened) await opened.write(text);
    else if (!io.stdout.write(text)) await once(io.stdout, 'drain');
  }
  return bytes;
}

interface ExportRun {
  readonly opened: ExportSource;
  readonly io: Io;
}

async function* toTexts(format: Format, { opened, io }: ExportRun): AsyncIterable<string> {
  using counted = openCountedSource(opened, io);
  if (format === 'html') yield await toExportedPage(counted.source, opened.ids);
  else for (const id of opened.ids) for (const line of await toLines(format, counted.source, id)) yield `${line}\n`;
}

async function toLines(format: 'json' | 'atif', source: ViewSource, id: string): Promise<string[]> {
  const view = await source.rollout(id);
  const trajectory = await readIfKept(source, id);
  if (format === 'json') return [JSON.stringify({ ...view, trajectory: trajectory ?? null })];
  return trajectory === undefined ? [] : toAtif(view, trajectory, await readVersion()).map((one) => JSON.stringify(one));
}
