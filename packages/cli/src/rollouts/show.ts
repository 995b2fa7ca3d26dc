// `millrace show`: one rollout with its trajectory, from the service or from a file that `submit --trajectories` wrote.

import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { openClient } from '@millrace/client';
import {
  messageOf,
  RolloutError,
  type RolloutView,
  rolloutView,
  type Trajectory,
  toTrajectoryView,
  trajectoryView,
} from '@millrace/protocol';
import { openTokenizer } from '@millrace/server';
import { type Arguments, type Command, type Io, serviceOptions, toServiceAddress, UsageError } from '../command/command.ts';
import { wantsColor } from '../terminal/text.ts';
import { renderShow } from './show-render.ts';

export const showCommand: Command = {
  name: 'show',
  summary: 'Shows one trajectory, turn by turn, with its reward, blame and timings.',
  positional: '<id>',
  options: {
    tokens: { type: 'boolean', describe: 'Shows the token ids of every segment, with their boundaries.' },
    logprobs: { type: 'boolean', describe: 'Shows the logprob beside each sampled token id; means --tokens.' },
    tokenizer: { type: 'string', value: 'FOLDER', describe: "Shows each token's text by the tokenizer in this folder; means --tokens." },
    file: { type: 'string', value: 'FILE', describe: 'Reads from what `submit --trajectories` wrote instead of the service.' },
    json: { type: 'boolean', describe: 'Writes the rollout with its trajectory as one JSON line.' },
    ...serviceOptions,
  },
  examples: [
    'millrace show r-1234',
    'millrace show r-1234 --tokens --logprobs',
    'millrace show r-1234 --tokenizer models/qwen3',
    'millrace show r-1234 --file results.jsonl | less -R',
  ],
  run: runShow,
};

interface Shown {
  readonly view: RolloutView;
  readonly trajectory: Trajectory | undefined;
}

async function runShow(args: Arguments, io: Io): Promise<number> {
  const [id, ...more] = args.positionals;
  if (id === undefined || more.length > 0) throw new UsageError('show wants one rollout id');
  const file = args.text('file');
  const shown = file === undefined ? await readFromService(id, args, io) : await readFromFile(id, file);
  if (args.flag('json')) {
    const trajectory = shown.trajectory === undefined ? null : toTrajectoryView(shown.trajectory);
    io.stdout.write(`${JSON.stringify({ ...shown.view, trajectory })}\n`);
    return 0;
  }
  const logprobs = args.flag('logprobs');
  const columns = Math.max(40, Math.min(io.stdout.columns ?? 100, 120));
  const folder = args.text('tokenizer');
  const tokenizer = folder === undefined ? undefined : await openTokenizer(folder);
  const look = {
    columns,
    color: wantsColor(io.stdout, io.env),
    tokens: logprobs || tokenizer !== undefined || args.flag('tokens'),
    logprobs,
    ...(tokenizer ? { tokenText: (id: number) => tokenizer.decode([id]) } : {}),
  };
  io.stdout.write(renderShow(shown.view, shown.trajectory, look));
  return 0;
}

async function readFromService(id: string, args: Arguments, io: Io): Promise<Shown> {
  await using client = openClient(toServiceAddress(args, io));
  const view = await client.get(id);
  const trajectory = await client.trajectory(id).catch((error: unknown) => {
    if (error instanceof RolloutError && error.code === 'not-found') return undefined;
    throw error;
  });
  return { view, trajectory };
}

async function readFromFile(id: string, file: string): Promise<Shown> {
  const input = createReadStream(file);
  try {
    for await (const line of createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })) {
      if (line.includes(id) && isRollout(line, id)) return parseShown(line, file);
    }
  } catch (error) {
    if (error instanceof RolloutError) throw error;
    throw new UsageError(`cannot read ${file}: ${messageOf(error)}`);
  } finally {
    input.destroy();
  }
  throw new RolloutError('not-found', `no rollout ${id} in ${file}`);
}

function isRollout(line: string, id: string): boolean {
  const value: unknown = JSON.parse(line);
  return typeof value === 'object' && value !== null && 'id' in value && value.id === id;
}

function parseShown(line: string, file: string): Shown {
  const parsed = rolloutView.extend({ trajectory: trajectoryView.nullish() }).safeParse(JSON.parse(line));
  if (!parsed.success)
    throw new RolloutError('bad-request', `${file} holds no rollout as submit writes them: ${parsed.error.issues[0]?.message}`);
  const { trajectory, ...view } = parsed.data;
  return { view, trajectory: trajectory ? fromView(trajectory) : undefined };
}

function fromView(view: NonNullable<ReturnType<typeof trajectoryView.parse>>): Trajectory {
  const { rollout_id, segments, ...rest } = view;
  return {
    ...rest,
    rolloutId: rollout_id,
    segments: segments.map(({ token_ids, logprobs, mask: _, routed_experts: __, ...head }) => ({
      ...head,
      tokenIds: Int32Array.from(token_ids),
      logprobs: Float32Array.from(logprobs),
    })),
  };
}
