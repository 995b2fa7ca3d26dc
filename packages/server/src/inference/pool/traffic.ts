// Counts what the calls to each backend amount to. The worker takes the counts every few seconds and writes them to the event log,
// so that no call costs a write.

import { type BackendId, messageOf, type RolloutError } from '@millrace/protocol';
import type { Generation } from '../backends/backend.ts';
import { judgeFailure } from './health.ts';

/** As it stands in the event. */
export interface TrafficCount {
  calls: number;
  retries: number;
  prompt_tokens: number;
  cached_tokens: number;
  sampled_tokens: number;
  model_ms: number;
  /** Failed calls by error code; `busy` if the backend asked to be left alone. */
  readonly errors: Record<string, number>;
}

export class Traffic {
  #counts = new Map<BackendId, TrafficCount>();
  #errors = new Map<BackendId, string>();
  #sampledTokens = 0;

  /** All tokens that have arrived since the start, also those of calls in flight. */
  get sampledTokens(): number {
    return this.#sampledTokens;
  }

  countAnswer(id: BackendId, answer: { readonly promptTokens: number; readonly generation: Generation; readonly ms: number }): void {
    const count = this.#countOf(id);
    count.calls += 1;
    count.prompt_tokens += answer.promptTokens;
    count.cached_tokens += answer.generation.cachedTokens ?? 0;
    count.model_ms += answer.ms;
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
    const count = { calls: 0, retries: 0, prompt_tokens: 0, cached_tokens: 0, sampled_tokens: 0, model_ms: 0, errors: {} };
    this.#counts.set(id, count);
    return count;
  }
}
