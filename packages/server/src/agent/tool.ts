// What a tool is: a specification for the model, and an action in the rollout's sandbox whose answer is text for the model.

import type { ToolCall, ToolSpec } from '@millrace/protocol';
import type { Sandbox } from '../sandbox/sandbox.ts';

export interface ToolContext {
  /** Absent in scenarios without a machine. */
  readonly sandbox?: Sandbox;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** `finish` ends the agent's part; anything else goes back to the model. */
export type ToolAnswer = { readonly kind: 'answer'; readonly text: string } | { readonly kind: 'finish'; readonly answer: string };

export interface Tool {
  readonly spec: ToolSpec;
  /** Arguments that do not fit are answered to the model, never thrown. Throws only when the sandbox or the rollout ends. */
  run(args: ToolCall['arguments'], context: ToolContext): Promise<ToolAnswer>;
}
