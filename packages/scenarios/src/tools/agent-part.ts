// The agent's part of a rollout, as a scenario sees it: how it ended, and how a turn that calls no tool is answered.

import type { Message, SamplingInput, StoppedBy, StopReason } from '@millrace/protocol';
import type { ToolContext } from './tool.ts';

/** Returns the messages that follow, a text that the agent's own turn continues with, or the answer that ends the agent's part. */
export type Respond = (
  turn: { readonly text: string; readonly number: number; readonly stoppedBy?: StoppedBy },
  context: ToolContext,
) => Promise<ScenarioReply>;

/** `sampling` holds from the next turn on, until it is set again. */
export type ScenarioReply =
  | { readonly messages: readonly Message[]; readonly sampling?: SamplingInput }
  | { readonly append: string; readonly sampling?: SamplingInput }
  | { readonly finish: string };

export interface AgentEnd {
  readonly stopReason: StopReason;
  /** The answer given to `finish`; otherwise the text of the last turn, without its reasoning. */
  readonly answer: string;
}
