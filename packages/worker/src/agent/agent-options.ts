// What the turn loop is given, and what it counts and reports.

import type { Clock } from '@millrace/base/clock';
import type { Pace } from '@millrace/base/pace';
import type { TraceSpan } from '@millrace/base/trace-span';
import type { Conversation } from '@millrace/model';
import type { Limits, Message, Sampling, SamplingInput } from '@millrace/protocol';
import type { Sandbox } from '@millrace/sandbox';
import type { Respond, Tool } from '@millrace/scenarios';
import type { Sampler } from '../inference/sampler.ts';
import type { LoopProgress } from './loop-progress.ts';

/** What the agent has done so far. The caller owns it, so that it survives any end of the loop. */
export interface AgentTally {
  turns: number;
  malformedCalls: number;
  modelMs: number;
  toolMs: number;
}

export interface TurnReport {
  readonly turn: number;
  readonly sampledTokens: number;
  readonly contextTokens: number;
  readonly modelMs: number;
  readonly toolMs: number;
  readonly calls: readonly string[];
  /** How many turns in a row have made exactly these calls, this one included. */
  readonly repeats: number;
}

export interface AgentOptions {
  readonly messages: readonly Message[];
  readonly tools: readonly Tool[];
  readonly sampler: Sampler;
  readonly conversation: Conversation;
  readonly sandbox?: Sandbox;
  readonly sampling: Sampling;
  /** What the scenario sets for the first turn. */
  readonly openingSampling?: SamplingInput;
  readonly limits: Limits;
  readonly tally: AgentTally;
  readonly signal: AbortSignal;
  readonly clock: Clock;
  /** Runs the tokenizer in short steps, so that a long text does not block other rollouts. */
  readonly pace: Pace;
  /** Above its turns; absent if the rollout is not traced. */
  readonly span?: TraceSpan;
  onTurn?(report: TurnReport): void;
  /** Where an earlier attempt was, whose turns the ledger and the tally have. */
  readonly continued?: LoopProgress;
  /** After each turn that another one follows; the next one waits for the promise, if there is one, and changes what this gets. */
  onBoundary?(progress: LoopProgress): Promise<void> | undefined;
  /** Called after a turn that calls no tool, which ends the agent's part without it. */
  readonly respond?: Respond;
  /** Called when the context is full. Returns the messages to continue with, as a new branch; undefined, or more than fits, ends it as `context_overflow`. */
  compact?(messages: readonly Message[]): Promise<readonly Message[] | undefined>;
}
