// `millrace scan`: conversations searched for refusals, loops, broken environments and patterns of one's own.

import { builtInPatterns, type Finding, loopName, parsePattern, scanTrajectory } from '@millrace/dashboard';
import { messageOf } from '@millrace/protocol';
import { type Arguments, type Command, type Io, jsonOption, serviceOptions, UsageError } from '../command/command.ts';
import { renderTable, toTableOptions } from '../terminal/table.ts';
import { cut, toCount, toVisible } from '../terminal/text.ts';
import { openCountedSource, openExportSource, readIfKept } from './export-source.ts';
import { pathOptions } from './view.ts';

export const scanCommand: Command = {
  name: 'scan',
  summary: 'Searches conversations for refusals, loops, broken environments and your own patterns.',
  positional: '[id …]',
  options: {
    pattern: {
      type: 'string',
      multiple: true,
      value: 'NAME=REGEX',
      describe: 'Also finds this regular expression, in what the agent and its tools said; the case of letters does not matter.',
    },
    from: { type: 'string', value: 'PATH', describe: 'A file or folder of results, or a store, instead of the service.' },
    group: { type: 'string', value: 'ID', describe: 'All rollouts of this group.' },
    limit: { type: 'string', value: 'N', describe: 'At most the newest N; 300 by default.' },
    blobs: pathOptions.blobs,
    ...jsonOption,
    ...serviceOptions,
  },
  examples: ['millrace scan', 'millrace scan --from results.jsonl --pattern "gave-up=I give up" --json'],
  run: runScan,
};

interface RolloutFinding extends Finding {
  readonly id: string;
}

async function runScan(args: Arguments, io: Io): Promise<number> {
  const patterns = [...args.list('pattern').map(toPattern), ...builtInPatterns];
  await using opened = await openExportSource(args, io, { newest: args.count('limit', 1) ?? 300 });
  using counted = openCountedSource(opened, io);
  const found: RolloutFinding[] = [];
  let searched = 0;
  for (const id of opened.ids) {
    await counted.source.rollout(id);
    const trajectory = await readIfKept(counted.source, id);
    if (trajectory === undefined) continue;
    searched += 1;
    found.push(...scanTrajectory(trajectory.segments, patterns).map((finding) => ({ id, ...finding })));
  }
  counted[Symbol.dispose]();
  if (args.flag('json')) for (const finding of found) io.stdout.write(`${JSON.stringify(finding)}\n`);
  else io.stdout.write(renderFound(found, [...patterns.map(({ name }) => name), loopName], io));
  io.stderr.write(`${toCount(searched)} conversations searched\n`);
  return 0;
}

function toPattern(text: string) {
  try {
    return parsePattern(text);
  } catch (error) {
    throw new UsageError(`--pattern ${text}: ${messageOf(error)}`);
  }
}

function renderFound(found: readonly RolloutFinding[], names: readonly string[], io: Io): string {
  const rows = names.map((name) => {
    const own = found.filter((finding) => finding.name === name);
    const [first] = own;
    const rollouts = new Set(own.map(({ id }) => id)).size;
    const example = first === undefined ? ['', ''] : [`${first.id} turn ${first.turn}`, toVisible(first.excerpt).replaceAll('\n', ' ')];
    return { cells: [cut(name, 30), toCount(rollouts), ...example] };
  });
  return `${renderTable(['found', 'rollouts', 'first', ''], rows, toTableOptions(io, [1])).join('\n')}\n`;
}
