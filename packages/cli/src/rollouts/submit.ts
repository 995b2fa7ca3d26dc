// `millrace submit`: JSON lines in, JSON lines out, each rollout when it ends. Standard output carries only rollouts.

import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { type Client, openClient, type Run } from '@millrace/client';
import { definedOf, messageOf, RolloutError, type RolloutView, type SubmissionInput, toTrajectoryView } from '@millrace/protocol';
import { type Arguments, type Command, serviceOptions, toServiceAddress, UsageError } from '../command/command.ts';
import { locateFaults } from '../tasks/faults.ts';
import { readHarborInput } from '../tasks/harbor-input.ts';
import { type InputText, readInput } from '../tasks/read-input.ts';
import { samplingOptions, toSamplingFields } from '../tasks/sampling-options.ts';
import { parseTaskLines, renderBadLines } from '../tasks/task-lines.ts';
import type { Io } from '../terminal/io.ts';
import type { LiveLine } from '../terminal/live-line.ts';
import { openProgress, renderSummary } from '../terminal/progress.ts';
import { toCount } from '../terminal/text.ts';
import { renderResume, writeResumeFile } from './resume.ts';
import { openHintMonitor } from './submit-hints.ts';
import { openTally, type Tally } from './tally.ts';

export const submitCommand: Command = {
  name: 'submit',
  summary: 'Submits tasks from JSON lines and writes each rollout as one JSON line when it ends.',
  positional: '[file.jsonl|-]',
  options: {
    scenario: {
      type: 'string',
      value: 'NAME',
      describe: 'The scenario of lines that name none; a line without a `task` field is then a bare task.',
    },
    harbor: {
      type: 'string',
      value: 'FOLDER',
      multiple: true,
      describe: 'Submits Harbor task folders in place of a file: one with a task.toml, or one that contains such folders.',
    },
    siblings: { type: 'string', short: 'n', value: 'N', describe: 'Makes each line a group of N rollouts.' },
    ...samplingOptions,
    trajectories: { type: 'boolean', describe: 'Adds the trajectory to each rollout.' },
    patience: {
      type: 'string',
      value: 'TIME',
      describe: 'How long to wait for a service that went away, such as 90s or 2h; 10m by default.',
    },
    ...serviceOptions,
  },
  examples: [
    'millrace submit tasks.jsonl > results.jsonl',
    'millrace submit --scenario math --siblings 8 --max-tokens 1024 --trajectories questions.jsonl > results.jsonl',
    'millrace submit --harbor tasks/ --siblings 8 > results.jsonl',
    'millrace submit tasks.jsonl --sampling top_p=0.95 --limits max_turns=20 > results.jsonl',
    'echo \'{"scenario":"math","task":{"question":"6 * 7?","answer":"42"}}\' | millrace submit | jq .reward',
  ],
  run: runSubmit,
};

type SubmissionWithId = SubmissionInput & { readonly id: string };

interface SubmitPlan {
  readonly submissions: readonly SubmissionWithId[];
  readonly source: string;
  /** The line of each submission. */
  readonly lines: readonly number[];
  readonly trajectories: boolean;
  readonly patienceMs: number;
  readonly address: { readonly url: string; readonly key?: string };
  /** The options that resuming needs as well. */
  readonly again: readonly string[];
  /** What each line stands for, if it is not a line of a file. */
  readonly names?: readonly string[];
}

async function runSubmit(args: Arguments, io: Io): Promise<number> {
  const address = toServiceAddress(args, io);
  const scenario = args.text('scenario');
  const options = { siblings: args.count('siblings', 1) ?? 1, prefix: `g-${randomUUID().slice(0, 8)}`, fields: toSamplingFields(args) };
  const patienceMs = args.duration('patience') ?? 600_000;
  const { source, content, names } = await readSubmitInput(args, io);
  const input = parseTaskLines(content, { ...options, ...(scenario === undefined ? {} : { scenario }) });
  if (input.kind === 'bad') throw new UsageError(renderBadLines(input.bad, source));
  if (input.submissions.length === 0) {
    io.stderr.write('there is nothing to submit\n');
    return 0;
  }
  // Ids are made here, so that a submission can be repeated by this process or by a later one.
  const submissions = input.submissions.map((one): SubmissionWithId => ({ ...one, id: one.id ?? `r-${randomUUID()}` }));
  const trajectories = args.flag('trajectories');
  const url = args.text('url');
  const again = [...(trajectories ? ['--trajectories'] : []), ...(url === undefined ? [] : ['--url', url])];
  await using client = openClient({ ...address, timeoutMs: patienceMs });
  return await runPlan(
    client,
    { submissions, source, lines: input.lines, trajectories, patienceMs, address, again, ...definedOf({ names }) },
    io,
  );
}

function readSubmitInput(args: Arguments, io: Io): Promise<InputText> {
  const folders = args.list('harbor');
  if (folders.length === 0) return readInput(args.positionals[0], io);
  if (args.positionals.length > 0) throw new UsageError('submit takes a file or --harbor, not both');
  return readHarborInput(folders);
}

async function runPlan(client: Client, plan: SubmitPlan, io: Io): Promise<number> {
  const stop = new AbortController();
  const run = await client.run(plan.submissions, { signal: stop.signal });
  const written = new Set<string>();
  const tally = openTally(plan.submissions.length, () => run.accepted);
  await using monitor = openHintMonitor(plan.address, plan.patienceMs);
  const progress = openProgress(io, tally.read, monitor.hints);
  monitor.onChange(progress.update);
  const interrupt = cancelOnInterrupt(run, { io, progress, tally, leave: () => stop.abort(new Error('interrupted')) });
  try {
    for await (const view of run) {
      tally.add(view);
      progress.update();
      await writeLine(io, plan.trajectories ? await withTrajectory(client, view) : view, stop.signal);
      written.add(view.id);
    }
    await interrupt.finished();
    progress.close();
    io.stderr.write(`${[renderSummary(tally.read(), tally.rewards()), ...tally.failures()].join('\n')}\n`);
    return tally.left() === 0 && tally.read().failed === 0 && tally.read().cancelled === 0 ? 0 : 1;
  } catch (error) {
    progress.close();
    if (isRefusal(error)) return await reportRefusal(error, { run, plan, tally, io });
    await reportUnfinished(plan, written, io);
    if (stop.signal.aborted) return 1;
    throw error;
  } finally {
    interrupt.release();
  }
}

/** The caller's input is wrong, so the rest of the same file is not wanted either. */
function isRefusal(error: unknown): boolean {
  return error instanceof RolloutError && error.blame === 'caller';
}

interface RefusedRun {
  readonly run: Run;
  readonly plan: SubmitPlan;
  readonly tally: Tally;
  readonly io: Io;
}

/** Requests are sent in order, so what was accepted is what came before the refused one. */
async function reportRefusal(error: unknown, { run, plan, tally, io }: RefusedRun): Promise<never> {
  const offset = run.accepted;
  const count = tally.left() > 0 ? await run.cancel() : 0;
  if (count > 0) io.stderr.write(`${toCount(count)} rollouts that were accepted before are cancelled\n`);
  throw locateFaults(error, { source: plan.source, lines: plan.lines, offset, ...definedOf({ names: plan.names }) });
}

async function reportUnfinished(plan: SubmitPlan, written: ReadonlySet<string>, io: Io): Promise<void> {
  const left = plan.submissions.filter(({ id }) => !written.has(id));
  if (left.length === 0) return;
  const file = await writeResumeFile(left);
  io.stderr.write(
    renderResume(
      left.map(({ id }) => id),
      { file, again: plan.again },
    ),
  );
}

async function withTrajectory(client: Client, view: RolloutView): Promise<unknown> {
  try {
    return { ...view, trajectory: toTrajectoryView(await client.trajectory(view.id)) };
  } catch (error) {
    if (error instanceof RolloutError && error.code === 'not-found') return { ...view, trajectory: null };
    throw error;
  }
}

async function writeLine(io: Io, value: unknown, signal: AbortSignal): Promise<void> {
  if (!io.stdout.write(`${JSON.stringify(value)}\n`)) await once(io.stdout, 'drain', { signal });
}

interface Interrupting {
  readonly io: Io;
  readonly progress: LiveLine;
  readonly tally: Tally;
  leave(): void;
}

interface Cancelling {
  /** Resolves when the cancelling is done, at once where there was none. */
  finished(): Promise<void>;
  release(): void;
}

/** The first Ctrl-C cancels what has not ended; the second leaves at once. */
function cancelOnInterrupt(run: Run, { io, progress, tally, leave }: Interrupting): Cancelling {
  let finished: Promise<unknown> | undefined;
  let hasLeft = false;
  const release = io.onInterrupt(() => {
    if (finished !== undefined) {
      hasLeft = true;
      return leave();
    }
    progress.say(`cancelling ${toCount(tally.left())} rollouts; press Ctrl-C again to leave at once`);
    finished = run.cancel().then(
      (count) => progress.say(`${toCount(count)} rollouts were asked to stop`),
      (error: unknown) => hasLeft || progress.say(`could not cancel: ${messageOf(error)}`),
    );
  });
  return { finished: async () => void (await finished), release };
}
