// Submits what `millrace submit` has read and checked. Each rollout is written when it ends, or all go on without the command. Whatever
// ends the command early, a file of what was not written is left, from which it continues.

import { once } from 'node:events';
import type { Client } from '@millrace/client';
import { definedOf, RolloutError, type RolloutView, type SubmissionInput, toTrajectoryView } from '@millrace/protocol';
import { locateFaults } from '../tasks/faults.ts';
import type { Io } from '../terminal/io.ts';
import { openProgress, renderSummary } from '../terminal/progress.ts';
import { toCount } from '../terminal/text.ts';
import { renderResume, writeResumeFile } from './resume.ts';
import { openHintMonitor } from './submit-hints.ts';
import { openTally } from './tally.ts';

type SubmissionWithId = SubmissionInput & { readonly id: string };

export interface SubmitPlan {
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

/** Returns 0 when every rollout is done. Ctrl-C leaves: what was submitted goes on. */
export async function submitAndFollow(client: Client, plan: SubmitPlan, io: Io): Promise<number> {
  const stop = new AbortController();
  const run = await client.run(plan.submissions, { signal: stop.signal });
  const written = new Set<string>();
  const tally = openTally(plan.submissions.length, () => run.accepted);
  await using monitor = openHintMonitor(plan.address, plan.patienceMs);
  const progress = openProgress(io, () => ({ ...tally.read(), calls: monitor.calls() }), monitor.hints);
  monitor.onChange(progress.update);
  const release = io.onInterrupt(() => stop.abort(new Error('interrupted')));
  try {
    for await (const view of run) {
      tally.add(view);
      progress.update();
      await writeLine(io, plan.trajectories ? await withTrajectory(client, view) : view, stop.signal);
      written.add(view.id);
    }
    progress.close();
    io.stderr.write(`${[renderSummary(tally.read(), tally.rewards()), ...tally.failures()].join('\n')}\n`);
    return tally.read().failed === 0 && tally.read().cancelled === 0 ? 0 : 1;
  } catch (error) {
    progress.close();
    await reportUnfinished(plan, written, io);
    if (stop.signal.aborted) return 1;
    throw locate(error, plan, run.accepted);
  } finally {
    release();
  }
}

/** Writes each submission with its id once it is accepted. The output is what a later `submit` takes to wait for the results. */
export async function submitOnly(client: Client, plan: SubmitPlan, io: Io): Promise<number> {
  const stop = new AbortController();
  const release = io.onInterrupt(() => stop.abort(new Error('interrupted')));
  const written = new Set<string>();
  const onAccept = (accepted: readonly { readonly id: string }[]) => {
    for (const one of plan.submissions.slice(written.size, written.size + accepted.length)) {
      io.stdout.write(`${JSON.stringify(one)}\n`);
      written.add(one.id);
    }
  };
  try {
    await client.submit(plan.submissions, { signal: stop.signal, onAccept });
  } catch (error) {
    await reportUnfinished(plan, written, io);
    if (stop.signal.aborted) return 1;
    throw locate(error, plan, written.size);
  } finally {
    release();
  }
  io.stderr.write(`${toCount(written.size)} submitted. To wait for the results: millrace submit with the file that has this output\n`);
  return 0;
}

/** Requests are sent in order, so what was accepted is what came before the refused one. */
function locate(error: unknown, { source, lines, names }: SubmitPlan, accepted: number): unknown {
  return locateFaults(error, { source, lines: lines.slice(accepted), ...definedOf({ names }) });
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
