// The contract of a tool: a specification for the model, and an action in the rollout's sandbox whose result is text for the model.

import type { ToolCall, ToolSpec } from '@millrace/protocol';
import type { Sandbox } from '@millrace/sandbox';

export interface ToolContext {
  /** Absent in scenarios without a sandbox. */
  readonly sandbox?: Sandbox;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** `finish` ends the agent's part; `text` goes back to the model. */
export type ToolResult = { readonly kind: 'text'; readonly text: string } | { readonly kind: 'finish'; readonly answer: string };

/** What a tool keeps between its calls, as JSON. Loading replaces it. */
interface ToolMemory {
  save(): unknown;
  load(saved: unknown): void;
}

/** Of a tool that keeps nothing. */
export const noMemory: ToolMemory = { save: () => null, load: () => {} };

export interface Tool {
  readonly spec: ToolSpec;
  /** With it, another process can go on with the tool after any call; what it does to the sandbox is in the sandbox. */
  readonly memory?: ToolMemory;
  /**
   * Invalid arguments and a timeout are results that the model reads. Throws only what ends the attempt: a dead sandbox, an aborted
   * signal, or a failure of the scenario's own code.
   */
  run(args: ToolCall['arguments'], context: ToolContext): Promise<ToolResult>;
  /**
   * Of a tool of the scenario: runs it with arguments that say nothing, made of this text. Whether there are such arguments; throws as `run`
   * does.
   */
  tryNeutral?(text: string, context: ToolContext): Promise<boolean>;
}
