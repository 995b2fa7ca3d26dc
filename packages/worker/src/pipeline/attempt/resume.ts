// What an attempt does to continue: at the end of init its sandbox becomes what it was after the last saved turn, and its run begins there.

import { createHash } from 'node:crypto';
import type { Deadline } from '@millrace/base/deadline';
import { definedOf, messageOf, RolloutError, type Submission } from '@millrace/protocol';
import { restoreCheckpoint, type SandboxDriver, type SandboxSpec } from '@millrace/sandbox';
import type { AgentOptions } from '../../agent/agent-options.ts';
import type { LoopProgress } from '../../agent/loop-progress.ts';
import { toTurnSampling } from '../../agent/turn-sampling.ts';
import type { Sampler } from '../../inference/sampler.ts';
import { canContinue, findResumePoint, loadMemory, type ResumePoint } from '../continue/continuation.ts';
import { TurnKeeper } from '../continue/turn-keeper.ts';
import type { AttemptRecord, Prepared } from './attempt-record.ts';
import { saveUntilDone } from './save.ts';
import type { StageDeps } from './stage-deps.ts';

/** The folders to save of a sandbox with this spec. Undefined if they do not hold all that its programs can change. */
export function savedFolders({ writable }: Pick<SandboxDriver, 'writable'>, spec: SandboxSpec | undefined): readonly string[] | undefined {
  return spec?.image === undefined ? writable : undefined;
}

/** What the saved turns depend on, besides the task: with another model, template or tools, they cannot be gone on from. */
function toSetup({ model, conversation }: Pick<StageDeps, 'model' | 'conversation'>, { opening }: Pick<Prepared, 'opening'>): string {
  const setup = [model, conversation.digests, opening.tools.map(({ spec }) => spec)];
  return createHash('sha256').update(JSON.stringify(setup)).digest('hex');
}

/** Whether its turns are to be saved: all that the agent's part consists of can be. */
function isSaved(record: AttemptRecord, { opening, sandbox, folders }: Prepared): boolean {
  const hasFolders = sandbox === undefined || folders !== undefined;
  return record.claimed.submission.agent === undefined && hasFolders && canContinue(opening);
}

/** Adds the turns to continue after, if there are any. If the sandbox cannot be restored, `prepare` makes another one, which begins. */
export async function resumePrepared(
  deps: StageDeps,
  record: AttemptRecord,
  { prepare, signal }: { prepare(): Promise<Prepared>; readonly signal: AbortSignal },
): Promise<Prepared> {
  const prepared = await prepare();
  const { continuing, clock } = deps;
  const { claimed } = record;
  const { fork } = claimed.submission;
  if (!continuing || !isSaved(record, prepared)) {
    if (fork) throw new RolloutError('init-failed', `it is a fork of ${fork.rollout}, and this machine saves no turns of its scenario`);
    return prepared;
  }
  const { sandbox, opening, folders = [] } = prepared;
  const { log } = continuing;
  if (claimed.attempt === 1 && !fork) return prepared;
  const read = () => continuing.store.loggedTurns(claimed);
  const turns = await saveUntilDone(read, { claim: claimed, what: 'read of its turns', clock, log, signal });
  const options = { turns, setup: toSetup(deps, prepared), hasSandbox: sandbox !== undefined };
  const continuation = await findResumePoint(continuing, claimed, options);
  if (!continuation) return prepared;
  const { checkpoint, turn, turnsAgain, state } = continuation;
  try {
    if (sandbox && checkpoint) await restoreCheckpoint(sandbox, checkpoint, { folders, signal });
    if (checkpoint?.memory) loadMemory(opening, checkpoint.memory);
  } catch (error) {
    signal.throwIfAborted();
    log.warn('rollout-continue-failed', { rolloutId: claimed.id, attempt: claimed.attempt, error: messageOf(error) });
    await sandbox?.[Symbol.asyncDispose]();
    if (fork) throw error;
    return await prepare();
  }
  if (continuation.isFork) return { ...prepared, continuation };
  record.continued = { times: state.times + 1, turn, turns_again: turnsAgain };
  log.info('rollout-continue', { rolloutId: claimed.id, attempt: claimed.attempt, ...record.continued });
  return { ...prepared, continuation };
}

/** The agent has been charged for the turns of earlier attempts, and they count. */
function takeOver(record: AttemptRecord, { state }: ResumePoint, { sampler, deadline }: Pick<ToKeep, 'sampler' | 'deadline'>): void {
  Object.assign(record.tally, state.tally);
  sampler.cacheWaitMs = state.cacheWaitMs;
  deadline.refund(-state.runMs);
}

type ToKeep = Prepared & { readonly sampler: Sampler; readonly deadline: Deadline; readonly dateMs: number };

/** Begins to save the turns of a run, after those that it continues. Undefined if they are not to be saved. */
export function openKeeper(deps: StageDeps, record: AttemptRecord, prepared: ToKeep): TurnKeeper | undefined {
  const { continuing } = deps;
  const { deadline, continuation } = prepared;
  if (continuation) takeOver(record, continuation, prepared);
  if (!continuing || !isSaved(record, prepared)) return undefined;
  const { claimed: claim, tally, leaving } = record;
  return new TurnKeeper({
    ...prepared,
    continuing,
    claim,
    tally,
    ...definedOf({ leaving, keep: claim.submission.keep_checkpoints }),
    setup: toSetup(deps, prepared),
    readRunMs: () => deadline.chargedMs,
  });
}

/** How the turn loop goes on, and what it tells of its turns. */
export function toLoop(
  keeper: TurnKeeper | undefined,
  { continuation, opening }: Prepared,
  { sampling }: Pick<Submission, 'sampling'>,
): Pick<AgentOptions, 'continued' | 'onBoundary'> {
  const onBoundary = keeper && ((progress: LoopProgress) => keeper.note(progress));
  const progress = continuation?.state.progress;
  // A fork may be sampled in its own way.
  const plan = progress && { ...progress.plan, sampling: toTurnSampling(sampling, opening.sampling, 'run-failed') };
  return definedOf({ continued: progress && plan && continuation.isFork ? { ...progress, plan } : progress, onBoundary });
}
