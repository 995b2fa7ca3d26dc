// How the agent's part of a rollout ended.

import type { StopReason } from '@millrace/protocol';

export interface AgentEnd {
  readonly stopReason: StopReason;
  /** The answer given to `finish`; otherwise the text of the last turn, without its reasoning. */
  readonly answer: string;
}
