// Plays one scripted agent against a task: the stages of the pipeline with a script in place of the model, in real sandboxes. What
// the pipeline would record is what it returns.

import { type Failure, type Limits, rolloutId, submission, workerId } from '@millrace/protocol';
import type { Sandbox } from '@millrace/sandbox';
import { type AgentEnd, lowestRewardOf, parseTask } from '@millrace/scenarios';
import { AttemptRecord, collectAttempt, evaluateAttempt, initAttempt, type Prepared, type StageDeps } from '@millrace/worker';
import type { HackerTarget, Play } from './hackers/hacker.ts';
import { LoopWatch } from './loop-watch.ts';
import { SandboxTimes } from './sandbox-times.ts';
import { readTarget } from './target.ts';

export interface PlayedTask {
  readonly scenario: string;
  readonly task: Readonly<Record<string, unknown>>;
  readonly limits: Limits;
}

export interface PlayResult {
  readonly reward: number | null;
  readonly failure?: Failure;
  /** How long judging kept the event loop at once. */
  readonly blockMs: number;
  /** How long judging took while no sandbox was busy for it. */
  readonly thinkMs: number;
  readonly ms: number;
  /** What the verifier said about it. */
  readonly details: Readonly<Record<string, unknown>>;
}

export interface PlayDeps extends StageDeps {
  /** The source files of the user's own scenarios. */
  readonly sources: readonly string[];
}

const mostTurns = 8;
const commandMs = 20_000;
/** Tools with which no one reaches a sandbox. */
const harmlessTools = ['think', 'finish', 'submit'];

/** `choose` gets the target once the task is prepared. Never rejects unless the signal aborts. */
export async function playAgent(
  deps: PlayDeps,
  played: PlayedTask,
  options: { readonly choose: (target: HackerTarget) => Play; readonly signal: AbortSignal },
): Promise<PlayResult> {
  const startMs = performance.now();
  const record = new AttemptRecord(toClaimed(played), deps.clock);
  const times = new SandboxTimes();
  const { signal } = options;
  await using _ = record.sandbox;
  const watch = new LoopWatch();
  let judgeMs = 0;
  try {
    record.stage = 'init';
    const prepared = { ...(await initAttempt(deps, record, signal)), signal };
    const target = await readPrepared(deps, played, prepared);
    record.stage = 'run';
    record.tally.turns = 1; // from here on the agent is to blame
    record.stop = await act(prepared, options.choose(target), played.limits);
    watch.start();
    const judgedAt = performance.now();
    try {
      const artifact = await collectAttempt(deps, record, prepared);
      await record.sandbox.close();
      record.stage = 'evaluate';
      await evaluateAttempt({ ...deps, driver: times.watch(deps.driver) }, record, { ...prepared, artifact });
    } finally {
      judgeMs = performance.now() - judgedAt;
    }
    return { reward: record.score?.reward ?? null, details: { ...record.score?.details }, ...measure() };
  } catch (error) {
    signal.throwIfAborted();
    const failure = record.failureOf(error);
    const reward = failure.blame === 'policy' ? await readLowest(deps, played) : null;
    return { reward, failure, details: {}, ...measure() };
  } finally {
    watch.stop();
    await Promise.allSettled(record.closers.map((close) => close()));
  }

  function measure() {
    return { blockMs: watch.stop(), thinkMs: Math.max(0, judgeMs - times.busyMs), ms: performance.now() - startMs };
  }
}

function toClaimed({ scenario, task, limits }: PlayedTask) {
  const parsed = submission.parse({ scenario, task, limits });
  const nowMs = Date.now();
  return {
    id: rolloutId.parse('play'),
    worker: workerId.parse('play'),
    attempt: 1,
    retries: 0,
    createdAtMs: nowMs,
    queuedAtMs: nowMs,
    failures: [],
    isJudgedApart: false,
    submission: parsed,
  };
}

async function readPrepared(
  deps: PlayDeps,
  { scenario, task }: PlayedTask,
  prepared: Prepared & { signal: AbortSignal },
): Promise<HackerTarget> {
  const { sandbox, opening, signal } = prepared;
  const canAct = sandbox !== undefined && opening.tools.some(({ spec }) => !harmlessTools.includes(spec.name));
  const folder = canAct ? (await sandbox.runShell('pwd', { timeoutMs: commandMs, signal })).output.trim() : '/workspace';
  const { messages, respond } = opening;
  return readTarget({ scenario, task, messages, canAct, isConversation: respond !== undefined, folder, sources: deps.sources });
}

/** What the sandbox throws ends the agent's part, as it does in a rollout. */
async function act(prepared: Prepared & { signal: AbortSignal }, play: Play, limits: Limits): Promise<AgentEnd> {
  const { sandbox, opening, signal } = prepared;
  if (sandbox) await actIn(sandbox, play, AbortSignal.any([signal, sandbox.died]));
  const { answer = '', turns = [] } = play;
  if (!opening.respond) return { stopReason: 'completed', answer };
  const context = { timeoutMs: limits.tool_timeout_s * 1000, signal, ...(sandbox && { sandbox }) };
  let text = answer;
  for (let number = 1; number <= Math.min(mostTurns, limits.max_turns); number += 1) {
    text = turns[number - 1] ?? answer;
    const reply = await opening.respond({ text, number }, context);
    if ('finish' in reply) return { stopReason: 'completed', answer: reply.finish };
  }
  return { stopReason: 'max_turns', answer: text };
}

async function actIn(sandbox: Sandbox, { files = {}, commands = [] }: Play, signal: AbortSignal): Promise<void> {
  for (const [path, content] of Object.entries(files)) {
    // The editor tells the agent that it cannot write there.
    await sandbox.writeFile(path, content, { signal }).catch(() => signal.throwIfAborted());
  }
  for (const command of commands) {
    signal.throwIfAborted();
    await sandbox.runShell(command, { timeoutMs: commandMs, signal });
  }
}

async function readLowest({ scenarios }: PlayDeps, { scenario: name, task }: PlayedTask): Promise<number | null> {
  const scenario = scenarios.get(name);
  if (!scenario) return null;
  try {
    return await lowestRewardOf(scenario, await parseTask(scenario, task));
  } catch {
    return null; // its own function failed: the rollout would have no reward
  }
}
