// What a fake backend is started with.

import type { FakeEngine } from './engines/wire.ts';
import type { Faults } from './faults.ts';
import type { Policy } from './policy.ts';
import type { TokenizerDialect } from './tokenizer.ts';
import type { FakeTokens } from './tokens.ts';

export type Latency =
  | number
  | ((answer: { readonly index: number; readonly promptTokens: number; readonly sampledTokens: number }) => number);

export interface FakeBackendOptions {
  readonly policy: Policy;
  /** Qwen3's by default. */
  readonly tokens?: FakeTokens;
  readonly latencyMs?: Latency;
  /** Milliseconds per token, after the latency. A stream is written token by token. */
  readonly tokenMs?: number;
  /** As its engine reports it. */
  readonly version?: string;
  /** When its process started, in seconds; a new one for each fake. */
  readonly startedAt?: number;
  /** Whether its logprobs are those after temperature and top-k, as with vLLM's --logprobs-mode processed_logprobs. */
  readonly isProcessed?: boolean;
  /** Part of every logprob, so that a token shows which weights sampled it. */
  readonly weights?: number;
  readonly faults?: Faults;
  readonly port?: number;
  /** The address that it listens on; only this machine reaches it unless set. */
  readonly host?: string;
  /** If set, requests for another model are refused. */
  readonly model?: string;
  readonly maxModelLen?: number;
  readonly apiKey?: string;
  /** The name of the weights in every reply of vLLM and SGLang. */
  readonly weightVersion?: string;
  /** It has only the routes of this engine. By default it has the token routes of all three, and otherwise those of vLLM. */
  readonly engine?: FakeEngine;
  /** vLLM's routes for pausing and for weights, as with VLLM_SERVER_DEV_MODE=1. */
  readonly devMode?: boolean;
  /** More requests than this at once are refused as vLLM and SGLang do. */
  readonly maxRequests?: number;
  /** Ids from here on are refused; by default Qwen3's. */
  readonly vocabularySize?: number;
  /** How it answers /inference/v1/generate: older versions with 404, newer ones without --enable-scale-out with 403. */
  readonly withoutGenerate?: 404 | 403;
  /** How many data-parallel ranks its metrics show. */
  readonly ranks?: number;
  /** How many tokens the KV cache of each rank holds, by its metrics; they do not say it by default. */
  readonly cacheTokens?: number;
  /** Whether it returns the experts of each token. */
  readonly routedExperts?: boolean;
  /** Whether it returns sampling masks: vLLM with every reply, SGLang on demand. */
  readonly samplingMask?: boolean;
  /** The LoRA adapters that it serves. If set, any other adapter is refused. */
  readonly adapters?: readonly string[];
  /** Which tokenizer routes it has; those of its engine by default. */
  readonly tokenizer?: TokenizerDialect;
  /** How many of the newest requests are kept. */
  readonly keep?: number;
}
