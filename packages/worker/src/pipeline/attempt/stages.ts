// What happens inside each stage: a sandbox is prepared, the agent runs in it, and its results are evaluated in another one.
// Clocks run only here, so waiting for a slot is never charged.

import { Deadline, type Uncharged } from '@millrace/base/deadline';
import { raceSignal } from '@millrace/base/race';
import { Ledger } from '@millrace/model';
import { definedOf, RolloutError, toAgentOptions } from '@millrace/protocol';
import type { Sandbox, SandboxSpec } from '@millrace/sandbox';
import {
  compactScenario,
  GatewayOutcome,
  type InitContext,
  initScenario,
  keyOf,
  type Prompts,
  parseTask,
  prepareScenario,
  runTimeoutOf,
  type Scenario,
  sandboxOf,
} from '@millrace/scenarios';
import { runTurns } from '../../agent/turn-loop.ts';
import { toTurnSampling } from '../../agent/turn-sampling.ts';
import { Sampler } from '../../inference/sampler.ts';
import { AgentTime } from './agent-time.ts';
import { chooseProcess } from './apart.ts';
import type { AttemptRecord, Prepared } from './attempt-record.ts';
import { serveGateway, serveHarness, takeHarness } from './gateway-attempt.ts';
import { openKeeper, resumePrepared, savedFolders, toLoop } from './resume.ts';
import type { StageDeps } from './stage-deps.ts';

export async function initAttempt(deps: StageDeps, record: AttemptRecord, signal: AbortSignal): Promise<Prepared> {
  const { submission } = record.claimed;
  using deadline = new Deadline('init', submission.limits.init_timeout_s * 1000, deps.clock);
  const within = AbortSignal.any([signal, deadline.signal]);
  try {
    const prepareOnce = () => prepare(deps, record, { signal: within, deadline });
    return await raceSignal(resumePrepared(deps, record, { prepare: prepareOnce, signal: within }), within);
  } finally {
    record.timings.init_ms += deadline.chargedMs;
  }
}

interface InitTime {
  readonly signal: AbortSignal;
  readonly deadline: Deadline;
}

async function prepare(deps: StageDeps, record: AttemptRecord, time: InitTime): Promise<Prepared> {
  const { limits, sampling, scenario: name, task: data } = record.claimed.submission;
  const known = deps.scenarios.get(name);
  if (!known)
    throw new RolloutError('unknown-scenario', `this worker has no scenario ${name}; it has ${deps.scenarios.names().join(', ')}`);
  const scenario = chooseProcess(known, record);
  const task = await parseTask(scenario, data);
  const toContext = (sandbox: Sandbox | undefined) =>
    new InitView(name, { task, limits, signal: time.signal, ...definedOf({ prompts: deps.prompts }) }, sandbox);
  const spec = await sandboxOf(scenario, task);
  const sandbox = await openPrepared(deps, record, { scenario, task, toContext, spec, ...time });
  const opening = await initScenario(scenario, toContext(sandbox), { outside: deps.outside, sandbox });
  record.closers.push(opening.close);
  toTurnSampling(sampling, opening.sampling, 'init-failed');
  return { scenario, task, opening, ...definedOf({ sandbox, folders: savedFolders(deps.driver, spec) }) };
}

interface Preparing extends InitTime {
  readonly scenario: Scenario;
  readonly task: unknown;
  readonly spec: SandboxSpec | undefined;
  toContext(sandbox: Sandbox): InitContext<unknown>;
}

/** Based on the layer that the group's siblings share, if the scenario has one; otherwise prepared alone. */
async function openPrepared(deps: StageDeps, record: AttemptRecord, preparing: Preparing): Promise<Sandbox | undefined> {
  const { scenario, task, spec, toContext, signal, deadline } = preparing;
  const { agent } = record.claimed.submission;
  if (agent !== undefined)
    record.harness = await deadline.uncharged(() =>
      takeHarness(deps, toAgentOptions(agent).name, { hasSandbox: spec !== undefined, signal }),
    );
  if (!spec) return undefined;
  const prepareIn = (sandbox: Sandbox) => prepareScenario(scenario, toContext(sandbox));
  // A rollout without siblings would pay for a layer that no other sandbox uses.
  const key = record.claimed.submission.group === undefined ? undefined : await keyOf(scenario, task);
  const layerOf = async () => {
    if (key === undefined) return undefined;
    const uncharged: Uncharged = (wait) => deadline.uncharged(wait);
    return deps.layers.open({ spec, key: JSON.stringify([scenario.name, key]), prepare: prepareIn, signal, uncharged });
  };
  let isForked = false;
  const sandbox = await record.sandbox.open(async () => {
    await using layer = await layerOf(); // the sandbox holds it from its start
    isForked = layer !== undefined;
    const more = definedOf({ layer: layer?.folder, harness: record.harness?.folder });
    return await deps.driver.open({ ...spec, ...more }, { signal });
  });
  if (!isForked) await prepareIn(sandbox);
  return sandbox;
}

export async function runAttempt(deps: StageDeps, record: AttemptRecord, prepared: Prepared & { signal: AbortSignal }): Promise<void> {
  const { submission, id } = record.claimed;
  const { scenario, task, opening, sandbox, signal, continuation } = prepared;
  const { limits, sampling } = submission;
  if (opening.state instanceof GatewayOutcome) return await serveGateway(deps, record, { ...prepared, outcome: opening.state });
  const timeoutS = await runTimeoutOf(scenario, task, limits.run_timeout_s);
  if (submission.agent !== undefined) return await serveHarness(deps, record, { ...prepared, timeoutS });
  using deadline = new Deadline('run', timeoutS * 1000, deps.clock);
  const { tools, respond } = opening;
  record.tools = tools.map((tool) => tool.spec);
  record.model = deps.model;
  record.digests = deps.conversation.digests;
  const dateMs = continuation?.state.dateMs ?? (submission.date === undefined ? deps.clock.now() : Date.parse(submission.date));
  record.date = new Date(dateMs).toISOString();
  using sampler = new Sampler({
    pool: deps.pool,
    gate: deps.gate,
    ...definedOf({ maxStaleness: limits.max_staleness }),
    ledger: continuation?.ledger ?? new Ledger(),
    sessionId: id,
    rollout: { id, worker: record.claimed.worker, attempt: record.claimed.attempt },
    createdAtMs: record.claimed.createdAtMs,
    ...definedOf({ group: submission.group }),
    clock: deps.clock,
    uncharged: (wait) => deadline.uncharged(wait),
    refund: (ms) => deadline.refund(ms),
  });
  record.sampler = sampler;
  await using keeper = openKeeper(deps, record, { ...prepared, sampler, deadline, dateMs });
  const within = AbortSignal.any([signal, deadline.signal, ...(sandbox ? [sandbox.died] : [])]);
  const time = new AgentTime(deadline, { timeoutMs: timeoutS * 1000, clock: deps.clock });
  const acting = keeper?.sandbox ?? sandbox;
  const optional = definedOf({ sandbox: acting && time.watch(acting) });
  const state = definedOf({ state: opening.state });
  try {
    record.stop = await runTurns({
      messages: opening.messages,
      tools,
      sampler,
      conversation: deps.conversation.at(dateMs),
      sampling,
      ...definedOf({ openingSampling: opening.sampling, span: record.stageSpan }),
      limits,
      tally: record.tally,
      signal: within,
      clock: deps.clock,
      pace: deps.pace,
      ...optional,
      onTurn: (report) => deps.onTurn(record, report),
      ...toLoop(keeper, prepared, submission),
      compact: (messages) =>
        raceSignal(compactScenario(scenario, { task, limits, signal: within, messages, ...optional, ...state }), within),
      ...(respond && {
        respond: (turn, context) => (sandbox ? time.during(sandbox, () => respond(turn, context)) : respond(turn, context)),
      }),
    });
  } finally {
    record.timings.run_ms += deadline.chargedMs;
  }
}

/** Throws a clear error if a scenario uses a sandbox that it did not ask for. */
class InitView implements InitContext<unknown> {
  readonly task: unknown;
  readonly limits: InitContext<unknown>['limits'];
  readonly signal: AbortSignal;
  readonly prompts?: Prompts;
  readonly #name: string;
  readonly #sandbox: Sandbox | undefined;

  constructor(name: string, context: Omit<InitContext<unknown>, 'sandbox'>, sandbox: Sandbox | undefined) {
    this.#name = name;
    this.task = context.task;
    this.limits = context.limits;
    this.signal = context.signal;
    if (context.prompts) this.prompts = context.prompts;
    this.#sandbox = sandbox;
  }

  get sandbox(): Sandbox {
    if (!this.#sandbox) throw new RolloutError('init-failed', `scenario ${this.#name} uses a sandbox, but it has no \`sandbox\` function`);
    return this.#sandbox;
  }
}
