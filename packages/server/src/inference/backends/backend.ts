// The backend contract: continue these token ids. An adapter for each dialect keeps it; the pool chooses among them.

import type { BackendId, BackendState, Dialect, FinishReason, LogprobsMode, RoutedExperts, Sampling } from '@millrace/protocol';

/** A backend as the store keeps it and the pool is told of it. */
export interface BackendRecord {
  readonly id: BackendId;
  readonly url: string;
  readonly dialect: Dialect;
  readonly model?: string;
  readonly apiKey?: string;
  readonly policyVersion: number;
  /** As its operator says; absent where nobody said. */
  readonly logprobsMode?: LogprobsMode;
  readonly state: BackendState;
  /** Absent while nothing is known against it. */
  readonly health?: BackendHealth;
}

export interface BackendHealth {
  /** Since when nothing is placed on it; absent when it answers. */
  readonly brokenAtMs?: number;
  /** What went wrong last. */
  readonly error: string;
  readonly errorAtMs: number;
}

/** One that joins; without a version it serves what the policy has now. */
export type NewBackend = Omit<BackendRecord, 'policyVersion' | 'health'> & Partial<Pick<BackendRecord, 'policyVersion'>>;

export interface GenerateRequest {
  /** The context as it goes on the wire: the ids in decimal, comma-separated, without brackets. Only ever appended to. */
  readonly promptJson: Buffer;
  readonly promptTokens: number;
  readonly sampling: Sampling;
  /** At most this many tokens: the smaller of the turn's limit and what the context still holds. */
  readonly maxTokens: number;
  readonly stopTokenIds: readonly number[];
  /** One per rollout, so that outer routers keep it on one server. */
  readonly sessionId: string;
  readonly requestId: string;
  readonly signal: AbortSignal;
  /** Told of the tokens as they come, where the server can stream them exactly; each token once, in order. */
  readonly onTokens?: (tokenIds: Int32Array, logprobs: Float32Array) => void;
  /** Ends the generation with what the server gives of it, as `abort`: nothing, where it is neither streamed nor answers an abort. */
  readonly cut?: AbortSignal;
}

/** `tokenIds` and `logprobs` have the same length; an adapter refuses a reply in which they do not align. */
export interface Generation {
  readonly tokenIds: Int32Array;
  readonly logprobs: Float32Array;
  readonly finishReason: FinishReason;
  readonly cachedTokens?: number;
  /** Where `sampling` asks for them: a row for each token of prompt and answer but the last. */
  readonly routedExperts?: RoutedExperts;
  /** Which weights sampled it, where the server itself says so; it is believed over the record. */
  readonly policyVersions?: { readonly first: number; readonly last: number };
}

export interface Backend {
  readonly id: BackendId;
  readonly policyVersion: number;
  /** What the logprobs are of. */
  readonly logprobs: LogprobsMode;
  /** Throws `backend-failed` (try again, here or elsewhere), `backend-refused` (the request itself is wrong) or `backend-bad-reply`. */
  generate(request: GenerateRequest): Promise<Generation>;
}
