// What the calls to each backend came to: counted here, and told to the event log now and then rather than call by call.

import { type BackendId, messageOf, RolloutError } from '@millrace/protocol';
import type { GenerateRequest, Generation } from '../backends/backend.ts';
import { judgeFailure } from './health.ts';

/** As an event tells it. */
export interface TrafficCount {
  calls: number;
  retries: number;
  prompt_tokens: number;
  cached_tokens: number;
  sampled_tokens: number;
  model_ms: number;
  /** Failed calls by error code; `busy` where the backend asked for patience. */
  readonly errors: Record<string, number>;
}

export class Traffic {
  #counts = new Map<BackendId, TrafficCount>();
  #errors = new Map<BackendId, string>();

  countAnswer(id: BackendId, call: { readonly request: GenerateRequest; readonly generation: Generation; readonly ms: number }): void {
    const count = this.#of(id);
    const { request, generation, ms } = call;
    count.calls += 1;
    count.prompt_tokens += request.promptTokens;
    count.cached_tokens += generation.cachedTokens ?? 0;
    count.sampled_tokens += generation.tokenIds.length;
    count.model_ms += ms;
  }

  countRetry(id: BackendId): void {
    this.#of(id).retries += 1;
  }

  countError(id: BackendId, error: unknown): void {
    const count = this.#of(id);
    const code = judgeFailure(error) === 'busy' ? 'busy' : error instanceof RolloutError ? error.code : 'internal';
    count.calls += 1;
    count.errors[code] = (count.errors[code] ?? 0) + 1;
    this.#errors.set(id, messageOf(error).slice(0, 500));
  }

  /** All since the last time, and the last error of each backend that had one. */
  take(): { readonly counts: ReadonlyMap<BackendId, TrafficCount>; readonly errors: ReadonlyMap<BackendId, string> } {
    const [counts, errors] = [this.#counts, this.#errors];
    this.#counts = new Map();
    this.#errors = new Map();
    return { counts, errors };
  }

  #of(id: BackendId): TrafficCount {
    const known = this.#counts.get(id);
    if (known) return known;
    const count = { calls: 0, retries: 0, prompt_tokens: 0, cached_tokens: 0, sampled_tokens: 0, model_ms: 0, errors: {} };
    this.#counts.set(id, count);
    return count;
  }
}
