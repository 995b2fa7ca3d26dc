// What is asked of the sampler for one turn, and what comes back.

import type { TraceSpan } from '@millrace/base/trace-span';
import type { GenerateRequest, Generation } from '@millrace/engines';
import type { BackendId, EngineFacts, Sampling } from '@millrace/protocol';

export interface TurnRequest {
  readonly sampling: Sampling;
  readonly maxTokens: number;
  readonly stopTokenIds: readonly number[];
  /** Finds the first stop string of `sampling` in the text of these ids; needed if a turn with stop strings can be cut. */
  readonly findStop?: FindStop;
  /** What the ledger's ids were rendered from, for servers that take messages only. */
  readonly chat?: GenerateRequest['chat'];
  readonly signal: AbortSignal;
  /** Each call is a span below it; absent if the rollout is not traced. */
  readonly span?: TraceSpan;
  /**
   * Appends a part of a turn to the ledger: of a turn that was cut, which is continued from there, or of one whose weights changed
   * while it was sampled. Without it a part that was cut is discarded.
   */
  readonly onPart?: (part: SampledTurn) => Promise<void> | void;
  /** Receives each token once, as it arrives, where the server streams. What it got of a call that breaks is a part of the turn. */
  readonly onTokens?: GenerateRequest['onTokens'];
}

export interface SampledTurn extends Generation {
  readonly backend: BackendId;
  readonly engine: EngineFacts;
  /** The weights at the start and at the end of the call. */
  readonly policyVersions: { readonly first: number; readonly last: number };
  /** Earlier calls from the same ids that gave no token. */
  readonly retries: number;
  /** The LoRA adapter that sampled it; absent for the base model. */
  readonly adapter?: string;
}

/** The stop string, and how many tokens the text needs to have it. */
type FindStop = (tokenIds: Int32Array) => Promise<{ readonly tokens: number; readonly stop: string } | undefined>;
