// The scenario contract: how one kind of task is prepared, run and scored. Scenarios never touch the store, the stages or
// the backends; a user's own is a module that exports `scenario`.

import type { Limits, Message, StopReason, ToolSpec } from '@millrace/protocol';
import type { ZodType } from 'zod';
import type { Sandbox, SandboxSpec } from '../sandbox/sandbox.ts';

/** What the agent is given to begin with. */
export interface Opening {
  readonly messages: readonly Message[];
  /** Names of the agent's tools, from agent/tools.ts. */
  readonly tools: readonly ToolSpec['name'][];
}

/** How the agent's part ended. */
export interface AgentEnd {
  readonly stopReason: StopReason;
  /** What was given to `finish`, else the text of the last turn without its reasoning. */
  readonly answer: string;
}

/** `reward` is the verifier's number; `details` is kept beside it for people. A verifier that cannot judge throws. */
export interface Score {
  readonly reward: number;
  readonly details?: Readonly<Record<string, unknown>>;
}

interface Context<Task> {
  readonly task: Task;
  readonly limits: Limits;
  readonly signal: AbortSignal;
}

export interface InitContext<Task> extends Context<Task> {
  /** Throws when the scenario asked for no sandbox. */
  readonly sandbox: Sandbox;
}

/**
 * The part of a set-up that the siblings of a group can share. It runs once on a node for all of them with the same key and the same
 * sandbox, also of other groups; its files are then there for each, copy-on-write: /workspace, and with an image all changes to it.
 * /tmp, /dev/shm, processes, and the shell's state are not. A rollout of no group is prepared in its own sandbox.
 */
export interface Preparation<Task> {
  /** Names all that `run` depends on, beside the sandbox. Absent for a task that shares nothing: `run` is then done in its own sandbox. */
  key(task: Task): string | undefined;
  /** Before `init`; the task is any of those with its key. */
  run(context: InitContext<Task>): Promise<void>;
}

export interface CompactContext<Task> extends Context<Task> {
  /** All that the context says now, and what was to come next. */
  readonly messages: readonly Message[];
  readonly sandbox?: Sandbox;
}

export interface CollectContext<Task> extends Context<Task> {
  readonly sandbox: Sandbox;
  readonly end: AgentEnd;
}

export interface EvaluateContext<Task> extends Context<Task> {
  readonly end: AgentEnd;
  /** What `collect` took out of the agent's sandbox; empty without one. */
  readonly artifact: Buffer;
  /** A fresh sandbox that the agent never touched; closed for you when evaluate returns. */
  openSandbox(): Promise<Sandbox>;
}

export interface Scenario<Task = unknown> {
  readonly name: string;
  /** Other names under which ProRL Agent's clients know it (their `data_source`). */
  readonly aliases?: readonly string[];
  /** Makes a task of a ProRL Agent `instance`; without it the instance, less its routing fields, is the task. */
  fromInstance?(instance: Readonly<Record<string, unknown>>): unknown;
  /** What a task must look like; a submission that does not fit is refused by the field's name. */
  readonly task: ZodType<Task>;
  /** The machine that the agent works in; absent when it needs none. */
  sandbox?(task: Task): SandboxSpec;
  /** What init need not do for every rollout anew; needs `sandbox`. */
  readonly prepare?: Preparation<Task>;
  init(context: InitContext<Task>): Promise<Opening>;
  /**
   * Asked when the agent's context is full: the messages to go on with, such as the opening and a summary. They are a new branch of
   * the trajectory. Undefined, or more than fits, ends the agent's part as `context_overflow`.
   */
  compact?(context: CompactContext<Task>): Promise<readonly Message[] | undefined>;
  /** Takes what must be judged out of the agent's sandbox, which is closed right after. */
  collect?(context: CollectContext<Task>): Promise<Buffer>;
  evaluate(context: EvaluateContext<Task>): Promise<Score>;
}
