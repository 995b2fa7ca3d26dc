// `millrace show`: one rollout with its trajectory, from the service or from a file that `submit --trajectories` wrote.

import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { openClient } from '@millrace/client';
import { openTokenizer } from '@millrace/model';
import { definedOf, messageOf, RolloutError, rolloutView, type Trajectory, toTrajectoryView, trajectoryView } from '@millrace/protocol';
import { type Arguments, type Command, serviceOptions, toServiceAddress, UsageError } from '../command/command.ts';
import { chooseOnly, findRollout } from '../command/find-id.ts';
import type { Io } from '../terminal/io.ts';
import { wantsColor } from '../terminal/text.ts';
import { renderCompare, type ShownRollout } from './show-compare.ts';
import { renderShow } from './show-render.ts';

export const showCommand: Command = {
  name: 'show',
  summary: 'Shows one rollout with its reward, failure, timings and trajectory, turn by turn. The start of an id is enough.',
  positional: '<id>',
  options: {
    tokens: { type: 'boolean', describe: 'Shows the token ids of every segment, with their boundaries.' },
    logprobs: { type: 'boolean', describe: 'Shows the logprob next to each sampled token; implies --tokens.' },
    tokenizer: {
      type: 'string',
      value: 'FOLDER',
      describe: 'Shows the text of each token, decoded by the tokenizer in this folder; implies --tokens.',
    },
    compare: { type: 'string', value: 'ID', describe: 'Shows this one next to it, from the token at which they part.' },
    file: { type: 'string', value: 'FILE', describe: 'Reads the output of `submit --trajectories` instead of the service.' },
    json: { type: 'boolean', describe: 'Writes the rollout with its trajectory as one JSON line.' },
    ...serviceOptions,
  },
  examples: [
    'millrace show r-1234',
    'millrace show r-1234 --tokens --logprobs',
    'millrace show r-1234 --tokenizer models/qwen3',
    'millrace show task-7:0 --compare task-7:3',
    'millrace show r-1234 --file results.jsonl | less -R',
  ],
  run: runShow,
};

async function runShow(args: Arguments, io: Io): Promise<number> {
  const [id = ''] = args.positionals;
  const file = args.text('file');
  const read = (one: string) => (file === undefined ? readFromService(one, args, io) : readFromFile(one, file));
  const shown = await read(id);
  const compared = args.text('compare');
  if (args.flag('json')) {
    const trajectory = shown.trajectory === undefined ? null : toTrajectoryView(shown.trajectory);
    io.stdout.write(`${JSON.stringify({ ...shown.view, trajectory })}\n`);
    return 0;
  }
  const logprobs = args.flag('logprobs');
  const columns = Math.max(40, Math.min(io.stdout.columns ?? 100, compared === undefined ? 120 : 220));
  const folder = args.text('tokenizer');
  const tokenizer = folder === undefined ? undefined : await openTokenizer(folder);
  const look = {
    columns,
    color: wantsColor(io.stdout, io.env),
    tokens: logprobs || tokenizer !== undefined || args.flag('tokens'),
    logprobs,
    ...(tokenizer ? { tokenText: (id: number) => tokenizer.decode([id]) } : {}),
  };
  io.stdout.write(
    compared === undefined ? renderShow(shown.view, shown.trajectory, look) : renderCompare([shown, await read(compared)], look),
  );
  return 0;
}

async function readFromService(id: string, args: Arguments, io: Io): Promise<ShownRollout> {
  await using client = openClient(toServiceAddress(args, io));
  const view = await findRollout(client, id);
  const trajectory = await client.trajectory(view.id).catch((error: unknown) => {
    if (isNotFound(error)) return undefined;
    throw error;
  });
  return { view, trajectory };
}

function isNotFound(error: unknown): boolean {
  return error instanceof RolloutError && error.code === 'not-found';
}

async function readFromFile(id: string, file: string): Promise<ShownRollout> {
  const input = createReadStream(file);
  const found: { readonly id: string; readonly line: string }[] = [];
  try {
    for await (const line of createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })) {
      const name = line.includes(id) ? readId(line) : undefined;
      if (name === id) return parseShown(line, file);
      if (name?.startsWith(id)) found.push({ id: name, line });
    }
  } catch (error) {
    if (error instanceof RolloutError) throw error;
    throw new UsageError(`cannot read ${file}: ${messageOf(error)}`);
  } finally {
    input.destroy();
  }
  return parseShown(chooseOnly(found, id, { what: 'rollout', where: `in ${file}` }).line, file);
}

function readId(line: string): string | undefined {
  const value: unknown = JSON.parse(line);
  return typeof value === 'object' && value !== null && 'id' in value && typeof value.id === 'string' ? value.id : undefined;
}

function parseShown(line: string, file: string): ShownRollout {
  const parsed = rolloutView.extend({ trajectory: trajectoryView.nullish() }).safeParse(JSON.parse(line));
  if (!parsed.success)
    throw new RolloutError(
      'bad-request',
      `${file} has a line for this rollout that submit did not write: ${parsed.error.issues[0]?.message}`,
    );
  const { trajectory, ...view } = parsed.data;
  return { view, trajectory: trajectory ? fromView(trajectory) : undefined };
}

function fromView(view: NonNullable<ReturnType<typeof trajectoryView.parse>>): Trajectory {
  const { rollout_id, segments, provenances, ...rest } = view;
  return {
    ...rest,
    ...definedOf({ provenances }),
    rolloutId: rollout_id,
    segments: segments.map(({ token_ids, logprobs, mask: _, routed_experts: __, sampling_mask: ___, ...head }) => ({
      ...head,
      tokenIds: Int32Array.from(token_ids),
      logprobs: Float32Array.from(logprobs),
    })),
  };
}
