// The functions of a scenario as the pipeline calls them: each attributes what it throws, and checks what it returns, since a
// scenario in plain JavaScript has no compiler to do so.

import { definedOf, describeIssues, type ErrorCode, message, type SamplingInput } from '@millrace/protocol';
import type { Sandbox, SandboxSpec } from '@millrace/sandbox';
import { z } from 'zod';
import { callScenario } from './call-scenario.ts';
import { openRespond } from './open-respond.ts';
import { type OpenedTools, openAllTools } from './open-tools.ts';
import { safeParseTask } from './read-task.ts';
import type { CollectContext, CompactContext, EvaluateContext, InitContext, Opening, Preparation, Scenario } from './scenario.ts';
import type { Respond } from './tools/agent-part.ts';
import { outsideConfig } from './tools/outside/outside-config.ts';
import { OutsideTools } from './tools/outside/outside-tools.ts';
import type { Tool } from './tools/tool.ts';
import type { Score } from './verifier/verifier.ts';

/** The task, as the scenario's schema parses it. */
export async function parseTask(scenario: Scenario, data: unknown): Promise<unknown> {
  const parsed = await callHook(scenario, 'task', () => safeParseTask(scenario, data));
  if (parsed.success) return parsed.data;
  throw new Error(`the task does not match the schema of scenario ${scenario.name}: ${describeIssues(parsed.error.issues)}`);
}

export async function prepareScenario(scenario: Scenario, context: InitContext<unknown>): Promise<void> {
  const { prepare } = scenario;
  if (prepare) await callHook(scenario, 'prepare.run', () => prepare.run(context));
}

export function keyOf(scenario: Scenario, task: unknown): Promise<Awaited<ReturnType<Preparation<unknown>['key']>>> {
  return callHook(scenario, 'prepare.key', () => scenario.prepare?.key(task));
}

/** Undefined also for a scenario without `sandbox`. */
export function sandboxOf(scenario: Scenario, task: unknown): Promise<SandboxSpec | undefined> {
  return callHook(scenario, 'sandbox', () => scenario.sandbox?.(task));
}

/** As the agent's, unless the scenario says otherwise. */
export function evaluateSandboxOf(scenario: Scenario, task: unknown): Promise<SandboxSpec | undefined> {
  return callHook(scenario, 'sandbox', async () => scenario.evaluateSandbox?.(task) ?? (await scenario.sandbox?.(task)));
}

/** All that a rollout of this task opens, as far as the scenario says. */
export async function sandboxesOf(scenario: Scenario, task: unknown): Promise<SandboxSpec[]> {
  const agents = await sandboxOf(scenario, task);
  const judges = scenario.evaluateSandbox ? await evaluateSandboxOf(scenario, task) : undefined;
  return [agents, judges].filter((spec) => spec !== undefined);
}

const isFunction = z.custom((value) => typeof value === 'function', 'must be a function').optional();
const isObject = z.custom((value) => typeof value === 'object' && value !== null, 'must be an object').optional();
const opening = z.object({
  messages: z.array(message).min(1),
  tools: z.array(z.unknown()),
  sampling: isObject,
  respond: isFunction,
  close: isFunction,
});

/** What the agent starts with, with its tools opened. */
export interface Opened {
  readonly messages: Opening['messages'];
  readonly tools: readonly Tool[];
  readonly sampling?: SamplingInput;
  readonly respond?: Respond;
  readonly state?: unknown;
  close(): Promise<void>;
}

/** What the tools of the agent are opened with, apart from what `init` says. */
interface ToolMeans {
  readonly outside?: OutsideTools | undefined;
  readonly sandbox?: Sandbox | undefined;
}

export function initScenario(scenario: Scenario, context: InitContext<unknown>, means: ToolMeans = {}): Promise<Opened> {
  return callHook(scenario, 'init', async () => {
    const given = await scenario.init(context);
    const parsed = opening.safeParse(given);
    if (!parsed.success) throw new Error(`it must return { messages, tools }: ${describeIssues(parsed.error.issues)}`);
    const { respond, state, sampling } = given;
    const tools = await openToolsOf(given, context, means);
    return {
      messages: given.messages,
      tools: tools.tools,
      ...(respond && { respond: openRespond(scenario.name, (turn, within) => respond.call(given, turn, within)) }),
      close: async () => {
        await tools.close();
        await given.close?.();
      },
      ...definedOf({ state, sampling }),
    };
  });
}

async function openToolsOf(given: Opening, context: InitContext<unknown>, means: ToolMeans): Promise<OpenedTools> {
  const { prompts, limits, signal } = context;
  const { sandbox, outside = new OutsideTools(outsideConfig.parse({})) } = means;
  try {
    return await openAllTools(given.tools, { prompts, outside, sandbox, timeoutMs: limits.init_timeout_s * 1000, signal });
  } catch (error) {
    await given.close?.();
    throw error;
  }
}

/** Undefined also for a scenario without `compact`. */
export async function compactScenario(scenario: Scenario, context: CompactContext<unknown>): Promise<Opening['messages'] | undefined> {
  return callHook(scenario, 'compact', () => scenario.compact?.(context));
}

/** Empty for a scenario without `collect`. */
export function collectScenario(scenario: Scenario, context: CollectContext<unknown>): Promise<Buffer> {
  return callHook(scenario, 'collect', async () => {
    const artifact = (await scenario.collect?.(context)) ?? Buffer.alloc(0);
    if (!Buffer.isBuffer(artifact)) throw new Error(`it must return a Buffer, not ${typeof artifact}`);
    return artifact;
  });
}

/** 0 for a scenario without `lowestReward`. */
export function lowestRewardOf(scenario: Scenario, task: unknown): Promise<number> {
  return callHook(scenario, 'lowestReward', () => z.number().parse(scenario.lowestReward?.(task) ?? 0));
}

/** 1 for a scenario without `highestReward`. */
export function highestRewardOf(scenario: Scenario, task: unknown): Promise<number> {
  return callHook(scenario, 'highestReward', () => z.number().parse(scenario.highestReward?.(task) ?? 1));
}

/** The shorter of the task's own time and the one of the limits. */
export async function runTimeoutOf(scenario: Scenario, task: unknown, limit: number): Promise<number> {
  return Math.min(
    limit,
    await callHook(scenario, 'runTimeoutS', () =>
      z
        .number()
        .gt(0)
        .parse(scenario.runTimeoutS?.(task) ?? limit),
    ),
  );
}

/** The longer of what the task's own limits allow and the one of the limits. */
export async function evaluateTimeoutOf(scenario: Scenario, task: unknown, limit: number): Promise<number> {
  const own = await callHook(scenario, 'evaluateTimeoutS', () =>
    z
      .number()
      .gt(0)
      .parse(scenario.evaluateTimeoutS?.(task) ?? limit),
  );
  return Math.max(limit, own);
}

const score = z.object({ reward: z.number(), details: z.record(z.string(), z.unknown()).optional() });

export function evaluateScenario(scenario: Scenario, context: EvaluateContext<unknown>): Promise<Score> {
  return callHook(scenario, 'evaluate', async () => {
    const given = await scenario.evaluate(context);
    const parsed = score.safeParse(given);
    if (!parsed.success) throw new Error(`it must return { reward: number, details? }: ${describeIssues(parsed.error.issues)}`);
    const { reward, details } = parsed.data;
    return { reward, ...definedOf({ details: details && toJson(details) }) };
  });
}

/** The details as the store keeps them. Throws if they hold what JSON cannot. */
function toJson(details: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const paths = new Map<unknown, string>([[details, 'details']]);
  const text = JSON.stringify(details, function (this: unknown, key: string, value: unknown) {
    const path = key === '' ? 'details' : `${paths.get(this) ?? '...'}.${key}`;
    if (typeof value === 'bigint' || typeof value === 'function' || typeof value === 'symbol')
      throw new Error(`${path} is a ${typeof value}, which JSON cannot hold`);
    if (typeof value === 'object' && value !== null) paths.set(value, path);
    return value;
  });
  return JSON.parse(text);
}

const codes = {
  task: 'init-failed',
  sandbox: 'init-failed',
  'prepare.key': 'init-failed',
  'prepare.run': 'init-failed',
  init: 'init-failed',
  runTimeoutS: 'run-failed',
  compact: 'run-failed',
  collect: 'run-failed',
  evaluate: 'evaluate-failed',
  evaluateTimeoutS: 'evaluate-failed',
  lowestReward: 'evaluate-failed',
  highestReward: 'evaluate-failed',
} as const satisfies Record<string, ErrorCode>;

function callHook<T>(scenario: Scenario, hook: keyof typeof codes, work: () => T | Promise<T>): Promise<T> {
  const hasAgentActed = hook === 'compact' || hook === 'collect' || hook === 'evaluate';
  return callScenario({ what: `scenario ${scenario.name}, ${hook}`, code: codes[hook], hasAgentActed }, work);
}
