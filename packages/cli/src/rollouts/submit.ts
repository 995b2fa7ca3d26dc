// `millrace submit`: JSON lines in, JSON lines out in the order of ending. Standard output carries nothing but rollouts.

import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { type Client, openClient, type Run } from '@millrace/client';
import { messageOf, RolloutError, type RolloutView, type SubmissionInput, toTrajectoryView } from '@millrace/protocol';
import { type Arguments, type Command, type Io, serviceOptions, toServiceAddress, UsageError } from '../command/command.ts';
import { openProgress, type ProgressView, renderSummary } from '../terminal/progress.ts';
import { toCount } from '../terminal/text.ts';
import { parseInput, renderBadLines } from './submit-input.ts';
import { openTally } from './tally.ts';

export const submitCommand: Command = {
  name: 'submit',
  summary: 'Submits tasks from JSON lines and writes each rollout as it ends, one JSON line each, in the order of ending.',
  positional: '[file.jsonl|-]',
  options: {
    scenario: {
      type: 'string',
      value: 'NAME',
      describe: 'The scenario of lines that name none; lines without a `task` field are then taken as bare tasks.',
    },
    repeat: { type: 'string', value: 'N', describe: 'Makes each line a group of N rollouts.' },
    trajectories: { type: 'boolean', describe: 'Adds the trajectory to each rollout written.' },
    ...serviceOptions,
  },
  examples: [
    'millrace submit tasks.jsonl > results.jsonl',
    'millrace submit --scenario math --repeat 8 --trajectories questions.jsonl > results.jsonl',
    'echo \'{"scenario":"math","task":{"question":"6 * 7?","answer":"42"}}\' | millrace submit | jq .reward',
  ],
  run: runSubmit,
};

async function runSubmit(args: Arguments, io: Io): Promise<number> {
  const address = toServiceAddress(args, io);
  const scenario = args.text('scenario');
  const repeat = args.count('repeat', 1) ?? 1;
  const prefix = `g-${randomUUID().slice(0, 8)}`;
  const { source, content } = await readInput(args, io);
  const input = parseInput(content, { repeat, prefix, ...(scenario === undefined ? {} : { scenario }) });
  if (input.kind === 'bad') throw new UsageError(renderBadLines(input.bad, source));
  if (input.submissions.length === 0) {
    io.stderr.write('there is nothing to submit\n');
    return 0;
  }
  await using client = openClient(address);
  return await runAll(client, input.submissions, { io, trajectories: args.flag('trajectories') });
}

async function readInput(args: Arguments, io: Io): Promise<{ readonly source: string; readonly content: string }> {
  const [path = '-', ...more] = args.positionals;
  if (more.length > 0) throw new UsageError(`submit takes one file, not ${args.positionals.length}`);
  if (path !== '-') {
    const content = await readFile(path, 'utf8').catch((error: Error) => {
      throw new UsageError(`cannot read ${path}: ${error.message}`);
    });
    return { source: path, content };
  }
  if (args.positionals.length === 0 && io.stdin.isTTY === true)
    throw new UsageError('submit wants a file, or JSON lines on its standard input');
  return { source: 'stdin', content: await text(io.stdin) };
}

interface Settings {
  readonly io: Io;
  readonly trajectories: boolean;
}

async function runAll(client: Client, submissions: readonly SubmissionInput[], { io, trajectories }: Settings): Promise<number> {
  const run = await client.run(submissions);
  const tally = openTally(submissions.length, () => run.accepted);
  const progress = openProgress(io, tally.read);
  const cancelling = cancelOnInterrupt(run, { io, progress, left: () => tally.left() });
  try {
    for await (const view of run) {
      tally.add(view);
      progress.update();
      await writeLine(io, trajectories ? await withTrajectory(client, view) : view);
    }
    await cancelling.finished();
    progress.close();
    io.stderr.write(`${[renderSummary(tally.read(), tally.rewards()), ...tally.failures()].join('\n')}\n`);
    return tally.left() === 0 && tally.read().failed === 0 && tally.read().cancelled === 0 ? 0 : 1;
  } catch (error) {
    progress.close();
    if (tally.left() > 0 && isRefusal(error))
      io.stderr.write(`${toCount(await run.cancel())} rollouts that were accepted before are cancelled\n`);
    throw error;
  } finally {
    cancelling.release();
  }
}

/** What the caller sent is wrong, so the rest of the same file is not wanted either. */
function isRefusal(error: unknown): boolean {
  return error instanceof RolloutError && error.blame === 'caller';
}

async function withTrajectory(client: Client, view: RolloutView): Promise<unknown> {
  try {
    return { ...view, trajectory: toTrajectoryView(await client.trajectory(view.id)) };
  } catch (error) {
    if (error instanceof RolloutError && error.code === 'not-found') return { ...view, trajectory: null };
    throw error;
  }
}

async function writeLine(io: Io, value: unknown): Promise<void> {
  if (!io.stdout.write(`${JSON.stringify(value)}\n`)) await once(io.stdout, 'drain');
}

interface Interrupting {
  readonly io: Io;
  readonly progress: ProgressView;
  left(): number;
}

interface Cancelling {
  /** Resolves when a cancelling that was begun is answered, at once when none was. */
  finished(): Promise<void>;
  release(): void;
}

/** The first Ctrl-C cancels what has not ended; the second leaves at once. */
function cancelOnInterrupt(run: Run, { io, progress, left }: Interrupting): Cancelling {
  let finished: Promise<void> | undefined;
  const release = io.onInterrupt(() => {
    if (finished !== undefined) process.exit(1);
    progress.say(`cancelling ${toCount(left())} rollouts; Ctrl-C again leaves at once`);
    finished = run.cancel().then(
      (count) => progress.say(`${toCount(count)} rollouts were told to stop`),
      (error: unknown) => progress.say(`could not cancel: ${messageOf(error)}`),
    );
  });
  return { finished: async () => finished, release };
}
