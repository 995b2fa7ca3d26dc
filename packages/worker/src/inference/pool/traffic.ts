// Counts what the calls to each backend amount to. The worker takes the counts every few seconds and writes them to the event log,
// so that no call costs a write.

import type { Generation } from '@millrace/engines';
import { type BackendId, messageOf, type RolloutError } from '@millrace/protocol';
import { judgeFailure } from './health.ts';

/** As it stands in the event. */
interface TrafficCount {
  calls: number;
  retries: number;
  prompt_tokens: number;
  cached_tokens: number;
  /** What should have been cached by the account of the KV cache, if turns wait for it. */
  expected_tokens: number;
  /** What an earlier turn of the rollout had left there, and was computed again. */
  recomputed_tokens: number;
  /** Waits for room in the KV cache that are over. */
  cache_wait_ms: number;
  sampled_tokens: number;
  model_ms: number;
  /** Failed calls by error code; `busy` if the backend asked to be left alone. */
  readonly errors: Record<string, number>;
}

interface CountedAnswer {
  readonly promptTokens: number;
  readonly generation: Generation;
  readonly expectedTokens: number;
  readonly recomputedTokens: number;
  readonly ms: number;
}

const none = {
  calls: 0,
  retries: 0,
  prompt_tokens: 0,
  cached_tokens: 0,
  expected_tokens: 0,
  recomputed_tokens: 0,
  cache_wait_ms: 0,
  sampled_tokens: 0,
  model_ms: 0,
};

export class Traffic {
  #counts = new Map<BackendId, TrafficCount>();
  #errors = new Map<BackendId, string>();
  #sampledTokens = 0;

  /** All tokens that have arrived since the start, also those of calls in flight. */
  get sampledTokens(): number {
    return this.#sampledTokens;
  }

  countAnswer(id: BackendId, answer: CountedAnswer): void {
    const count = this.#countOf(id);
    count.calls += 1;
    count.prompt_tokens += answer.promptTokens;
    count.cached_tokens += answer.generation.cachedTokens ?? 0;
    count.expected_tokens += answer.expectedTokens;
    count.recomputed_tokens += answer.recomputedTokens;
    count.model_ms += answer.ms;
  }

  countCacheWait(id: BackendId, ms: number): void {
    this.#countOf(id).cache_wait_ms += ms;
  }

  /** Tokens that have arrived, during a call or at its end. */
  countTokens(id: BackendId, tokens: number): void {
    this.#countOf(id).sampled_tokens += tokens;
    this.#sampledTokens += tokens;
  }

  countRetry(id: BackendId): void {
    this.#countOf(id).retries += 1;
  }

  countError(id: BackendId, error: RolloutError): void {
    const count = this.#countOf(id);
    const code = judgeFailure(error) === 'busy' ? 'busy' : error.code;
    count.calls += 1;
    count.errors[code] = (count.errors[code] ?? 0) + 1;
    this.#errors.set(id, messageOf(error).slice(0, 500));
  }

  /** The counts since the last time, and the last error of each backend that had one. */
  take(): { readonly counts: ReadonlyMap<BackendId, TrafficCount>; readonly errors: ReadonlyMap<BackendId, string> } {
    const [counts, errors] = [this.#counts, this.#errors];
    this.#counts = new Map();
    this.#errors = new Map();
    return { counts, errors };
  }

  #countOf(id: BackendId): TrafficCount {
    const known = this.#counts.get(id);
    if (known) return known;
    const count = { ...none, errors: {} };
    this.#counts.set(id, count);
    return count;
  }
}
