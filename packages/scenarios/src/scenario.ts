// The scenario contract: how one kind of task is prepared, run and scored. A scenario never touches the store, the stages or the
// backends. A user's scenario is a module that exports `scenario`.

import type { Limits, Message, SamplingInput, Schema, StoppedBy } from '@millrace/protocol';
import type { Sandbox, SandboxSpec } from '@millrace/sandbox';
import type { CustomTool, CustomToolContext } from './custom-tool.ts';
import type { AgentEnd } from './tools/agent-part.ts';
import type { Prompts } from './tools/prompts.ts';
import type { ToolChoice } from './tools/tool-names.ts';
import type { Score } from './verifier/verifier.ts';

/** What the agent starts with. */
export interface Opening {
  /** At least one; rendered once with the model's chat template. */
  readonly messages: readonly Message[];
  /** Built-in tools and tools of the configuration by name, MCP servers, and the scenario's own tools. */
  readonly tools: readonly (ToolChoice | CustomTool)[];
  /** Sampling parameters for the first turn and those after it, until `respond` sets others. They replace those of the submission. */
  readonly sampling?: SamplingInput;
  /**
   * Called after each turn that calls no tool; its time limit is `tool_timeout_s`. Returns what the agent reads next, as a user message
   * or as messages; `{ append: text }` to continue the agent's own turn with a text; or `{ finish: answer }` to end the agent's part.
   * Without it, a turn that calls no tool ends the agent's part.
   */
  respond?(turn: AgentTurn, context: CustomToolContext): TurnReply | Promise<TurnReply>;
  /** Whatever this rollout keeps; `compact`, `collect` and `evaluate` get it as `state`. */
  readonly state?: unknown;
  /** Called once when the attempt has ended, however it ended. What it throws is logged. */
  close?(): void | Promise<void>;
}

/** A turn of the agent that called no tool. */
export interface AgentTurn {
  /** What the agent wrote, without its reasoning. It ends before the stop string, or after it with `include_stop_str_in_output`. */
  readonly text: string;
  /** What ended the turn: a stop string, or the id of a token that ends turns. */
  readonly stoppedBy?: StoppedBy;
  /** From 1. */
  readonly number: number;
}

/** `sampling` replaces fields of the submission from the next turn on, until it is set again. */
export type TurnReply =
  | string
  | readonly Message[]
  | { readonly messages: string | readonly Message[]; readonly sampling?: SamplingInput }
  | { readonly append: string; readonly sampling?: SamplingInput }
  | { readonly finish: string };

interface TaskContext<Task> {
  /** The task, as the schema parsed it. */
  readonly task: Task;
  readonly limits: Limits;
  /** Aborts when the stage runs out of time or the rollout is cancelled. Pass it to everything that waits. */
  readonly signal: AbortSignal;
}

export interface InitContext<Task> extends TaskContext<Task> {
  /** Throws if the scenario has no `sandbox` function. */
  readonly sandbox: Sandbox;
  /** The prompts of the built-in scenarios, as the user replaced them. */
  readonly prompts?: Prompts;
}

/**
 * The part of the setup that the siblings of a group share. It runs once per machine for all rollouts with the same key and the same
 * sandbox, across groups. Each of them then starts with its files, copy-on-write: /workspace, and with an image all changes to it.
 * Files in /tmp and /dev/shm, processes and the shell's state are not shared. A rollout without a group runs it in its own sandbox.
 */
export interface Preparation<Task> {
  /** Names everything that `run` depends on apart from the sandbox. Undefined: `run` is not shared for this task. */
  key(task: Task): string | undefined | Promise<string | undefined>;
  /** Runs before `init`, with any of the tasks that have this key. */
  run(context: InitContext<Task>): void | Promise<void>;
}

/** What `init` returned as `state`. */
interface Stateful {
  readonly state?: unknown;
}

export interface CompactContext<Task> extends TaskContext<Task>, Stateful {
  /** Everything in the context, followed by the messages that did not fit. */
  readonly messages: readonly Message[];
  readonly sandbox?: Sandbox;
}

export interface CollectContext<Task> extends TaskContext<Task>, Stateful {
  /** The agent's sandbox; it is closed as soon as `collect` returns. */
  readonly sandbox: Sandbox;
  readonly end: AgentEnd;
}

export interface EvaluateContext<Task> extends TaskContext<Task>, Stateful {
  readonly end: AgentEnd;
  /** What `collect` returned; empty without `collect`. */
  readonly artifact: Buffer;
  /** How many tokens the agent sampled in all its turns. */
  readonly sampledTokens: number;
  /** Opens a fresh sandbox that the agent never touched; by default as `evaluateSandbox(task)`, or else `sandbox(task)`. All of them are closed when `evaluate` returns. */
  openSandbox(spec?: SandboxSpec): Promise<Sandbox>;
}

interface TrialContext<Task> extends TaskContext<Task> {
  /** The task's own solution, or nothing. */
  readonly solution: 'gold' | 'empty';
  openSandbox(spec?: SandboxSpec): Promise<Sandbox>;
  /** A sandbox as `sandbox(task)`, in which `prepare` has run; tasks with the same key share its files. */
  openPrepared(): Promise<Sandbox>;
}

/** The result of judging one solution of the task itself. */
export interface TaskTrial {
  readonly isRight: boolean;
  /** Tests that the task names, by whether they passed; to find those that differ between runs. */
  readonly tests: Readonly<Record<string, boolean>>;
  readonly why?: string;
}

export interface Scenario<Task = unknown> {
  /** The name that submissions use. */
  readonly name: string;
  /** Other names that ProRL Agent's clients use for it (their `data_source`). */
  readonly aliases?: readonly string[];
  /** Makes a task from a ProRL Agent `instance`. Without it, the instance without its routing fields is the task. */
  fromInstance?(instance: Readonly<Record<string, unknown>>): unknown;
  /** A zod 4 schema. A task that does not match is refused when it is submitted, with the names of the fields. */
  readonly task: Schema<Task>;
  /** The sandbox that the agent works in. Leave it out, or return undefined for a task, if the agent needs none. */
  sandbox?(task: Task): SandboxSpec | undefined | Promise<SandboxSpec | undefined>;
  /** The sandbox that `evaluate` opens, if it is not that of the agent. Both are checked when a task is submitted. */
  evaluateSandbox?(task: Task): SandboxSpec | undefined;
  /** The longest time of the agent in seconds, if the task has one of its own; the shorter of it and `run_timeout_s` counts. */
  runTimeoutS?(task: Task): number | undefined;
  /**
   * How long judging may take in seconds by the task's own limits, such as those of its tests; the longer of it and `evaluate_timeout_s`
   * counts, so that no right result is cut off.
   */
  evaluateTimeoutS?(task: Task): number | undefined;
  /** What is doubtful about a task that its schema accepts, one sentence each: `millrace task check` shows it. */
  warnings?(task: Task): readonly string[] | Promise<readonly string[]>;
  /** Setup that rollouts share; needs `sandbox`. */
  readonly prepare?: Preparation<Task>;
  /** Prepares the sandbox for this rollout and returns what the agent starts with. */
  init(context: InitContext<Task>): Opening | Promise<Opening>;
  /**
   * Called when the agent's context is full. Returns the messages to continue with, such as the opening and a summary; they start a
   * new branch of the trajectory. Undefined, or more than fits, ends the agent's part as `context_overflow`.
   */
  compact?(context: CompactContext<Task>): Promise<readonly Message[] | undefined>;
  /** Takes what must be judged out of the agent's sandbox. */
  collect?(context: CollectContext<Task>): Buffer | Promise<Buffer>;
  /**
   * The reward of an agent that ended its sandbox, or left nothing that can be judged; 0 without this function. Such a rollout is `done`,
   * and its `failure` says why.
   */
  lowestReward?(task: Task): number;
  /** The reward of a perfect result; 1 without this function. An evaluation counts a sample with this reward as correct. */
  highestReward?(task: Task): number;
  /** Judges the task itself, for `millrace task check`: its own solution must be right, and no solution must be wrong. */
  trial?(context: TrialContext<Task>): Promise<TaskTrial>;
  /** Measures the reward. Throws if it cannot. */
  evaluate(context: EvaluateContext<Task>): Score | Promise<Score>;
  /**
   * Of a scenario whose functions run in a process that its rollouts share: the same scenario in a process that one rollout has for itself.
   * There, an end of the process after the agent has acted is an error of the function that ran; a kill from outside is one only with `isLast`.
   */
  apart?(options: { readonly isLast: boolean }): Scenario<Task> & Disposable;
}

/** Returns the scenario unchanged; the compiler infers the type of the task from its schema. */
export function defineScenario<Task>(scenario: Scenario<Task>): Scenario<Task> {
  return scenario;
}
