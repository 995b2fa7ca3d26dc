// How a scenario answers an agent's turn that calls no tool.

import type { Message, SamplingInput, StoppedBy } from '@millrace/protocol';
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
