// The backend contract: continue these token ids. Each dialect has an adapter that implements it; the pool chooses a backend.

import type {
  BackendId,
  BackendState,
  Dialect,
  FinishReason,
  LogprobsMode,
  Message,
  RoutedExperts,
  Sampling,
  SamplingMask,
  StoppedBy,
  TokenizerAgreement,
  ToolSpec,
} from '@millrace/protocol';
import type { VersionSpan } from './reply/weight-versions.ts';

/** A backend as the store keeps it. */
export interface BackendRecord {
  readonly id: BackendId;
  readonly url: string;
  readonly dialect: Dialect;
  readonly model?: string;
  readonly apiKey?: string;
  readonly policyVersion: number;
  /** As the operator declared it. */
  readonly logprobsMode?: LogprobsMode;
  readonly state: BackendState;
  /** Absent while nothing is known about its server. */
  readonly probe?: BackendProbe;
  /** Absent while no call to it has failed. */
  readonly health?: BackendHealth;
}

/** What tells one server from another, and one start of a server from the next. */
export interface ServerFacts {
  /** Different after each start of the server, if it reports such a thing: when its process started. */
  readonly instance?: string;
  /** As the server names it: `vllm`, `sglang`, `llamacpp`. */
  readonly engine?: string;
  readonly version?: string;
  readonly model?: string;
  /** Where the server has the model from. */
  readonly root?: string;
  /** How many tokens the prompt and the reply may have together. */
  readonly contextTokens?: number;
  /** Of its configuration, as the server computes it. */
  readonly fingerprint?: string;
  /** As the server reports it, or as one sampled token shows. */
  readonly logprobsMode?: LogprobsMode;
  /** Whether it encodes text as the service does; a backend that does not is broken. */
  readonly tokenizer?: TokenizerAgreement;
}

/** What is known about a backend's server: from the probe when it joined, recovered or was asked again, and from its calls. */
export interface BackendProbe extends ServerFacts {
  /** How many data-parallel ranks it has, each with its own cache. */
  readonly ranks?: number;
  /** How many tokens the KV cache of a rank holds; absent if the server does not say, or has slots instead of one cache. */
  readonly cacheTokens?: number;
  /** When the server was last asked. */
  readonly atMs?: number;
  /** The route that its calls use, if it is not the first choice of the dialect, and why. */
  readonly route?: string;
  readonly routeReason?: string;
  /** The text and ids that differ, or why it was not checked. */
  readonly tokenizerReason?: string;
  /** Why the mode of its logprobs could not be found out, if it could not. */
  readonly logprobsReason?: string;
  /** Counts the servers that have answered here, from 1: a restart counts, and so does a join. */
  readonly generation?: number;
  /** The servers that answered here before, oldest first; those that answer in turns if `isSeveral`. */
  readonly others?: readonly ServerFacts[];
  /** It is not the server that joined: what the operator declared of that one is not assumed where it can be found out. */
  readonly isReplaced?: boolean;
  /** Several servers answer in turns, as behind a router. The facts are then those that all of them share. */
  readonly isSeveral?: boolean;
  /** The policy version of the weights that the server starts with; absent if they are not known. */
  readonly startVersion?: number;
  /** The policy version at which this server was last seen. A resume may have named another since. */
  readonly provenVersion?: number;
  /** Nothing says which weights it serves since it was restarted: it is broken until a join or a resume does. */
  readonly hasUnknownWeights?: boolean;
}

interface BackendHealth {
  /** Since when nothing is placed on it; absent while it works. */
  readonly brokenAtMs?: number;
  /** The machines that cannot reach it, by their host names, and since when nothing of theirs is placed on it. */
  readonly brokenFor?: readonly { readonly machine: string; readonly sinceMs: number }[];
  /** The last error. It stays after the backend has recovered. */
  readonly error: string;
  readonly errorAtMs: number;
}

/** A backend that joins. Without a version it serves the policy's current one. */
export type NewBackend = Omit<BackendRecord, 'policyVersion' | 'health'> &
  Partial<Pick<BackendRecord, 'policyVersion'>> & {
    /** Why it does not work yet: it joins as broken, and is probed until it does. */
    readonly error?: string;
  };

/** What the ids of a prompt were rendered from. */
export interface ChatPrompt {
  readonly messages: readonly Message[];
  readonly tools: readonly ToolSpec[];
}

export interface GenerateRequest {
  /** The context as it goes on the wire: decimal ids, comma-separated, without brackets. It is only ever appended to. */
  readonly promptJson: Buffer;
  readonly promptTokens: number;
  /** For servers that take messages only. Absent in a health check. */
  readonly chat?: () => ChatPrompt;
  readonly sampling: Sampling;
  /** The smaller of the turn's limit and the room left in the context. */
  readonly maxTokens: number;
  readonly stopTokenIds: readonly number[];
  /** One per rollout, so that a router in front of the servers keeps the rollout on one of them. */
  readonly sessionId: string;
  readonly requestId: string;
  /** The LoRA adapter that samples, by the server's name for it; absent for the base model. */
  readonly adapter?: string;
  /** Requests with different salts share no prefix in the server's cache. */
  readonly cacheSalt?: string;
  /** Requests with a higher priority go first, where the server schedules by priority; absent if none is sent. */
  readonly priority?: number;
  /** The data-parallel rank that has the rollout's prefix in its cache. */
  readonly rank?: number;
  /** The first tokens of the prompt whose experts are known from earlier turns, with the shape of a row: they are not asked for again. */
  readonly knownExperts?: { readonly tokens: number; readonly shape: readonly number[] };
  readonly signal: AbortSignal;
  /** Receives each token once, in order, as it arrives. Never called where the server cannot stream exactly. */
  readonly onTokens?: (tokenIds: Int32Array, logprobs: Float32Array) => void;
  /** Receives how many tokens have arrived so far, at most once a second. Never called where the call is not streamed. */
  readonly onProgress?: (sampledTokens: number) => void;
  /** Ends the generation as `abort` with the tokens that the server has given: none if it neither streams nor supports abort. */
  readonly cut?: AbortSignal;
}

/** `tokenIds` and `logprobs` have the same length; an adapter refuses a reply in which they do not align. */
export interface Generation {
  readonly tokenIds: Int32Array;
  readonly logprobs: Float32Array;
  readonly finishReason: FinishReason;
  /** What ended it as `stop`: the id of a stop token, or a stop string; absent if the server does not say. */
  readonly stoppedBy?: StoppedBy;
  readonly cachedTokens?: number;
  /** If `sampling` asks for them: one row for each token of prompt and answer except the last, without those already known. */
  readonly routedExperts?: RoutedExperts;
  /** If `sampling` asks for it: a mask for each token. */
  readonly samplingMask?: SamplingMask;
  /** The weights that sampled it, if the server reports them. They take precedence over the record. */
  readonly policyVersions?: { readonly first: number; readonly last: number };
  /** The weights of each token, if the server reports them so exactly. They cover all tokens in order. */
  readonly versionSpans?: readonly VersionSpan[];
}

export interface Backend {
  readonly id: BackendId;
  readonly policyVersion: number;
  /** Whether its logprobs are from before or after temperature and penalties. */
  readonly logprobs: LogprobsMode;
  /**
   * Throws `backend-failed` (retry here or elsewhere), `backend-refused` (the request itself is wrong), `backend-bad-reply`,
   * or the reason of the request's signal.
   */
  generate(request: GenerateRequest): Promise<Generation>;
}
