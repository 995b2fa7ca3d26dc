// A scenario in Python behind the scenario contract: each function is a call to its process.

import { definedOf, message, type SamplingInput } from '@millrace/protocol';
import type { Sandbox, SandboxSpec } from '@millrace/sandbox';
import { z } from 'zod';
import type { CustomTool } from '../custom-tool.ts';
import type { EvaluateContext, InitContext, Opening, Scenario, TurnReply } from '../scenario.ts';
import { fromJsonSchema } from '../tools/json-schema.ts';
import { mcpChoice, type ToolChoice } from '../tools/tool-names.ts';
import type { Score } from '../verifier/verifier.ts';
import { type AskContext, openAsks } from './sandbox-asks.ts';
import { type RolloutHandle, Sidecar, type SidecarOptions } from './sidecar.ts';
import type { PythonDescription, PythonFunction } from './wire.ts';

/** Loads the file once to learn what it is; its process starts with the first call. Throws an Error that names the file and the line. */
export async function importPythonScenario(file: string, options: SidecarOptions = {}): Promise<Scenario> {
  const sidecar = new Sidecar(file, options);
  const description = await sidecar.describe();
  const apart = ({ isLast }: { readonly isLast: boolean }) => {
    const own = new Sidecar(file, { ...options, apart: isLast ? 'last' : 'apart' });
    return { ...toScenario(own, description), apart, [Symbol.dispose]: () => own.close() };
  };
  return { ...toScenario(sidecar, description), apart };
}

function toScenario(sidecar: Sidecar, { name, aliases, task, has, reward_range: [lowest, highest] }: PythonDescription): Scenario {
  const ofTask = (called: PythonFunction, given: unknown) => sidecar.call(called, { context: { task: given } });
  return {
    name,
    aliases,
    task: fromJsonSchema(task),
    ...(has.includes('sandbox') && { sandbox: async (given: unknown) => sandboxSpec.parse(await ofTask('sandbox', given)) ?? undefined }),
    ...(has.includes('prepare') && {
      prepare: {
        key: async (given: unknown) =>
          (has.includes('prepare_key') ? keyReply.parse(await ofTask('prepare_key', given)) : undefined) ?? undefined,
        run: (context: InitContext<unknown>) => prepare(sidecar, context),
      },
    }),
    init: (context) => init(sidecar, context, has.includes('run')),
    ...(has.includes('compact') && {
      compact: async ({ messages, ...rest }) =>
        compactReply.parse(await callIn(sidecar, 'compact', { ...rest, more: { messages } })) ?? undefined,
    }),
    ...(has.includes('collect') && {
      collect: async ({ end, ...rest }) =>
        Buffer.from(z.base64().parse(await callIn(sidecar, 'collect', { ...rest, more: { end: toEnd(end) } })), 'base64'),
    }),
    lowestReward: () => lowest,
    highestReward: () => highest,
    evaluate: (context) => evaluate(sidecar, context),
  } satisfies Scenario<unknown>;
}

const sandboxSpec = z.custom<SandboxSpec>((value) => value === null || typeof value === 'object').nullable();
const keyReply = z.string().nullable();
const compactReply = z.array(message).nullable();

interface PythonCallContext extends AskContext {
  readonly task: unknown;
  readonly limits: unknown;
  /** The rollout, as `init` returned it. */
  readonly state?: unknown;
  readonly more?: Readonly<Record<string, unknown>>;
}

function callIn(sidecar: Sidecar, name: PythonFunction, given: PythonCallContext): Promise<unknown> {
  const { task, limits, signal, sandbox, openSandbox, state, more } = given;
  const context = { task, limits, has_sandbox: sandbox !== undefined, ...more };
  const onAsk = openAsks({ signal, sandbox, ...definedOf({ openSandbox }) });
  return sidecar.call(name, { context, signal, onAsk, rollout: state as RolloutHandle });
}

async function prepare(sidecar: Sidecar, { task, limits, signal, sandbox }: InitContext<unknown>): Promise<void> {
  await callIn(sidecar, 'prepare', { task, limits, signal, sandbox, state: sidecar.openRollout() });
}

const toolReply = z.union([
  z.string(),
  mcpChoice,
  z.object({ name: z.string(), description: z.string(), parameters: z.record(z.string(), z.unknown()) }),
]);
const ownSampling = z.custom<SamplingInput>((value) => typeof value === 'object' && value !== null, 'must be a dictionary').optional();
const openingReply = z.object({ messages: z.array(message), tools: z.array(toolReply), sampling: ownSampling });

async function init(sidecar: Sidecar, context: InitContext<unknown>, hasRun: boolean): Promise<Opening> {
  const { task, limits, signal } = context;
  const sandbox = sandboxIn(context);
  const state = sidecar.openRollout();
  try {
    const call = { task, limits, signal, sandbox, state };
    const { messages, tools, sampling } = openingReply.parse(await callIn(sidecar, 'init', call));
    const later = { task, limits, state };
    return {
      messages,
      tools: tools.map((tool) =>
        'mcp' in Object(tool) || typeof tool === 'string' ? (tool as ToolChoice) : toTool(sidecar, tool as PythonTool, later),
      ),
      state,
      ...definedOf({ sampling }),
      ...(hasRun && {
        respond: async ({ text, number, stoppedBy }, { signal: within }) => {
          const more = { text, turn: number, ...definedOf({ stopped_by: stoppedBy }) };
          return definedOf(respondReply.parse(await callIn(sidecar, 'respond', { ...later, signal: within, sandbox, more }))) as TurnReply;
        },
      }),
      close: () => sidecar.closeRollout(state),
    };
  } catch (error) {
    sidecar.closeRollout(state);
    throw error;
  }
}

const respondReply = z.union([
  z.object({ messages: z.array(message).min(1), sampling: ownSampling }),
  z.object({ append: z.string(), sampling: ownSampling }),
  z.object({ finish: z.string() }),
]);

const toolResult = z.union([z.object({ text: z.string() }).transform(({ text }) => text), z.object({ finish: z.string() })]);

interface PythonTool {
  readonly name: string;
  readonly description: string;
  readonly parameters: Readonly<Record<string, unknown>>;
}

function toTool(
  sidecar: Sidecar,
  { name, description, parameters }: PythonTool,
  call: { readonly task: unknown; readonly limits: unknown; readonly state: RolloutHandle },
): CustomTool {
  return {
    name,
    description,
    parameters: fromJsonSchema(parameters),
    run: async (args, context) => {
      const given = { ...call, signal: context.signal, sandbox: sandboxIn(context), more: { name, args } };
      return toolResult.parse(await callIn(sidecar, 'tool', given));
    },
  };
}

async function evaluate(sidecar: Sidecar, context: EvaluateContext<unknown>): Promise<Score> {
  const { task, limits, signal, end, artifact, sampledTokens, openSandbox, state } = context;
  const more = { end: toEnd(end), artifact: artifact.toString('base64'), sampled_tokens: sampledTokens };
  return score.parse(await callIn(sidecar, 'evaluate', { task, limits, signal, openSandbox, state, more }));
}

const score = z.custom<Score>((value) => typeof value === 'object' && value !== null);

function toEnd({ stopReason, answer }: EvaluateContext<unknown>['end']): Record<string, string> {
  return { stop_reason: stopReason, answer };
}

/** The contexts throw where there is none. */
function sandboxIn(context: { readonly sandbox: Sandbox }): Sandbox | undefined {
  try {
    return context.sandbox;
  } catch {
    return undefined; // Python throws when the scenario uses it
  }
}
