// The run of a rollout whose agent is not our turn loop: one that runs elsewhere, or a harness in the sandbox. Both talk to a session of the
// gateway, whose turns are the rollout's.

import { createHash, randomBytes } from 'node:crypto';
import { Deadline, Expired, type Uncharged } from '@millrace/base/deadline';
import { Ledger } from '@millrace/model';
import { definedOf, type Message, RolloutError, toAgentOptions } from '@millrace/protocol';
import { type InstalledHarness, runHarness, type Sandbox } from '@millrace/sandbox';
import { type AgentEnd, type GatewayOutcome, gatewayTask } from '@millrace/scenarios';
import type { TurnReport } from '../../agent/agent-options.ts';
import type { GatewayHost } from '../../gateway/gateway-host.ts';
import type { GatewayOptions } from '../../gateway/gateway-options.ts';
import { GatewaySession } from '../../gateway/gateway-session.ts';
import { runGateway } from '../../gateway/run-gateway.ts';
import { Sampler } from '../../inference/sampler.ts';
import type { AttemptRecord, Prepared } from './attempt-record.ts';
import type { StageDeps } from './stage-deps.ts';

type GatewayDeps = Pick<StageDeps, 'gateways' | 'harnesses' | 'clock' | 'pace' | 'pool' | 'gate' | 'model' | 'conversation' | 'onTurn'>;

/** The agent is elsewhere: its requests are answered until its caller ends it. Only the idle timeout of the task limits its time. */
export async function serveGateway(
  deps: GatewayDeps,
  record: AttemptRecord,
  { task, outcome, signal }: Prepared & { readonly signal: AbortSignal; readonly outcome: GatewayOutcome },
): Promise<void> {
  const { id, attempt } = record.claimed;
  const { clock, model } = deps;
  const host = requireHost(deps);
  const startedAt = clock.monotonic();
  const onSession = (session: GatewaySession) => {
    record.sampler = toSampledRecord(session);
  };
  try {
    const options = toSessionOptions(deps, record, { signal });
    const answer = await runGateway({ id, attempt, model, task: gatewayTask.parse(task), host, outcome, onSession, options });
    record.stop = { stopReason: 'completed', answer };
  } finally {
    record.timings.run_ms += clock.monotonic() - startedAt;
    record.tools = outcome.tools;
  }
}

/** What its configuration calls the policy. */
const policyName = 'policy';
/** A hostile agent could otherwise hold the worker's memory with bodies. */
const maxConnections = 16;
const shownErrorLength = 2000;

/** The harness runs in the sandbox until it exits, is out of turns or of time; what it left is judged. */
export async function serveHarness(
  deps: GatewayDeps,
  record: AttemptRecord,
  { opening, sandbox, signal, timeoutS }: Prepared & { readonly signal: AbortSignal; readonly timeoutS: number },
): Promise<void> {
  const installed = record.harness;
  if (!sandbox || !installed) throw new RolloutError('internal', 'a harness without its sandbox');
  const host = requireHost(deps);
  const { limits, agent } = record.claimed.submission;
  using deadline = new Deadline('run', timeoutS * 1000, deps.clock);
  const turns = new AbortController();
  const within = AbortSignal.any([signal, deadline.signal, sandbox.died, turns.signal]);
  const { allow, reward_rule } = toAgentOptions(agent ?? installed.harness.name);
  let left = 0;
  const checkTurns = () => {
    if (record.tally.turns + left >= limits.max_turns) turns.abort(new TurnsSpent());
  };
  const onTurn = (report: TurnReport) => {
    deps.onTurn(record, report);
    checkTurns();
  };
  // A harness that breaks its turns off uses them up too.
  const onLeave = () => {
    left += 1;
    checkTurns();
  };
  const time = { uncharged: ((wait) => deadline.uncharged(wait)) as Uncharged, refund: (ms: number) => deadline.refund(ms) };
  using session = new GatewaySession({ ...toSessionOptions(deps, record, { signal: within, ...time }), allow, onTurn, onLeave });
  record.sampler = toSampledRecord(session);
  try {
    record.stop = await playHarness({
      host,
      session,
      sandbox,
      installed,
      id: record.claimed.id,
      opening: opening.messages,
      signal: within,
    });
  } finally {
    await session.ended();
    record.timings.run_ms += deadline.chargedMs;
    record.tools = session.book.branches[0]?.tools ?? [];
    record.harnessReport = (reward) => session.book.toReport(reward_rule, reward);
  }
}

class TurnsSpent extends Error {}

interface HarnessPlay {
  readonly host: GatewayHost;
  readonly session: GatewaySession;
  readonly sandbox: Sandbox;
  readonly installed: InstalledHarness;
  readonly id: string;
  readonly opening: readonly Message[];
  readonly signal: AbortSignal;
}

async function playHarness({ host, session, sandbox, installed, id, opening, signal }: HarnessPlay): Promise<AgentEnd> {
  const key = `mrh-${randomBytes(24).toString('hex')}`;
  const keyDigest = createHash('sha256').update(key).digest('hex');
  const nothing = () => {};
  using _hosted = host.add(id, { session, model: policyName, keyDigest, controlDigest: keyDigest, noteRequest: nothing, end: nothing });
  const server = host.openServer(id);
  await using service = await sandbox.listen({ maxConnections, onConnection: (connection) => void server.emit('connection', connection) });
  const task = { url: `http://127.0.0.1:${service.port}`, key, model: policyName, prompt: toPrompt(opening) };
  try {
    const end = await runHarness(sandbox, installed.harness, { ...task, timeoutMs: longestMs, signal });
    if (session.book.branches.length === 0) {
      const shown = `${end.stderr}\n${end.stdout}`.trim().slice(-shownErrorLength);
      throw new RolloutError(
        'run-failed',
        `${installed.harness.name} ${end.kind} (exit code ${end.exitCode}) before its model had said anything: ${shown}`,
      );
    }
    return { stopReason: 'completed', answer: lastText(session) };
  } catch (error) {
    if (error instanceof TurnsSpent) return { stopReason: 'max_turns', answer: lastText(session) };
    if (error instanceof Expired) return { stopReason: 'rollout_timeout', answer: lastText(session) };
    throw error;
  } finally {
    server.closeAllConnections();
  }
}

/** The deadline ends it before, and stands still while the policy is waited for. */
const longestMs = 86_400_000;

/** What the scenario says as the user. Its system message is about tools that a harness does not have. */
function toPrompt(opening: readonly Message[]): string {
  const said = opening.filter(({ role }) => role === 'user').map(({ content }) => content);
  return said.join('\n\n');
}

function lastText({ book }: GatewaySession): string {
  return book.ledger.messages.findLast(({ role }) => role === 'assistant')?.content ?? '';
}

/** Throws if this machine has none, or the scenario has no sandbox for it. */
export async function takeHarness(
  { harnesses }: GatewayDeps,
  name: string,
  { hasSandbox, signal }: { readonly hasSandbox: boolean; readonly signal: AbortSignal },
): Promise<InstalledHarness> {
  if (!hasSandbox) throw new RolloutError('task-failed', `the task has no sandbox, and ${name} runs in one: leave \`agent\` out`);
  if (!harnesses) throw new RolloutError('run-failed', 'this worker has no harnesses');
  return await harnesses.take(name, signal);
}

function requireHost({ gateways }: GatewayDeps): GatewayHost {
  if (!gateways) throw new RolloutError('run-failed', 'this worker takes no requests of gateways');
  return gateways;
}

interface SessionTime {
  readonly signal: AbortSignal;
  readonly uncharged?: Uncharged;
  readonly refund?: (ms: number) => void;
}

function toSessionOptions(deps: GatewayDeps, record: AttemptRecord, { signal, ...time }: SessionTime): Omit<GatewayOptions, 'allow'> {
  const { id, attempt, worker, submission, createdAtMs } = record.claimed;
  const { limits, sampling, group } = submission;
  const { clock, pace, pool, gate, model } = deps;
  const dateMs = submission.date === undefined ? clock.now() : Date.parse(submission.date);
  Object.assign(record, { model, digests: deps.conversation.digests, date: new Date(dateMs).toISOString() });
  const openSampler = () =>
    new Sampler({
      ...{ pool, gate, clock, ledger: new Ledger(), sessionId: id, rollout: { id, worker, attempt }, createdAtMs },
      ...definedOf({ maxStaleness: limits.max_staleness, group }),
      ...time,
    });
  const onTurn = (report: TurnReport) => deps.onTurn(record, report);
  const more = definedOf({ span: record.stageSpan });
  return {
    conversation: deps.conversation.at(dateMs),
    sampling,
    limits,
    tally: record.tally,
    clock,
    pace,
    signal,
    openSampler,
    onTurn,
    ...more,
  };
}

function toSampledRecord({ book }: GatewaySession): AttemptRecord['sampler'] {
  return {
    get ledger() {
      return book.ledger;
    },
    get cacheWaitMs() {
      return book.lineages.reduce((sum, { sampler }) => sum + sampler.cacheWaitMs, 0);
    },
  };
}
