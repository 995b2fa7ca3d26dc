// What a session of a gateway is given.

import type { Clock } from '@millrace/base/clock';
import type { Pace } from '@millrace/base/pace';
import type { TraceSpan } from '@millrace/base/trace-span';
import type { Conversation } from '@millrace/model';
import type { Limits, Sampling } from '@millrace/protocol';
import type { AgentTally, TurnReport } from '../agent/agent-options.ts';
import type { Sampler } from '../inference/sampler.ts';

export interface GatewayOptions {
  readonly conversation: Conversation;
  readonly sampling: Sampling;
  /** The sampling parameters that requests may set; what they ask for otherwise is only recorded. */
  readonly allow: readonly string[];
  readonly limits: Limits;
  readonly tally: AgentTally;
  readonly clock: Clock;
  readonly pace: Pace;
  readonly signal: AbortSignal;
  /** Above its calls; absent if the rollout is not traced. */
  readonly span?: TraceSpan;
  openSampler(): Sampler;
  onTurn(report: TurnReport): void;
  /** A client left while its turn was sampled; what was sampled is kept. */
  onLeave?(): void;
}
