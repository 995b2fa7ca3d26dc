// The two probes of a backend that may be down: whether its server reports itself healthy, and whether it generates a token.
// Each has a time limit.

import type { Clock } from '@millrace/base/clock';
import { raceSignal } from '@millrace/base/race';
import { type Backend, type BackendRecord, type GenerateRequest, healthPathOf, readHealth } from '@millrace/engines';
import { definedOf, RolloutError, sampling } from '@millrace/protocol';
import { probeTimeoutMs } from '@millrace/store';
import type { Dispatcher } from 'undici';

export interface ProbeOptions {
  readonly signal: AbortSignal;
  readonly clock: Clock;
  readonly dispatcher: Dispatcher;
}

/** What a probe needs of the policy gate: servers are not sampled from while their weights change. */
export interface ProbeGate {
  readonly isOpen: boolean;
  opened(options: { readonly signal: AbortSignal }): Promise<void>;
  pass(options: { readonly signal: AbortSignal }): Promise<Disposable & { readonly cut: AbortSignal; readonly adapter?: string }>;
}

interface TimeLimit extends Pick<ProbeOptions, 'signal' | 'clock'> {
  readonly timeoutMs?: number;
}

/** Samples nothing. */
export async function checkHealth(record: BackendRecord, { dispatcher, ...limit }: ProbeOptions): Promise<void> {
  await within(limit, (signal) => readHealth(record, { signal, dispatcher, path: healthPathOf(record.dialect) }));
}

/** A vLLM that returns sampling masks refuses requests without a top_k. */
const probeSampling = sampling.parse({ top_k: 1 });

/** Samples one token after a prompt of one token: it goes the whole way of a rollout's call and costs almost nothing. */
export async function tryOut(
  backend: Backend,
  { cut, adapter, ...options }: ProbeOptions & Pick<GenerateRequest, 'cut' | 'adapter'>,
): Promise<void> {
  const prompt = { promptJson: Buffer.from('1'), promptTokens: 1, maxTokens: 1, stopTokenIds: [], ...definedOf({ cut, adapter }) };
  const names = { sessionId: 'probe', requestId: `probe-${backend.id}` };
  const generation = await within(options, (signal) => backend.generate({ ...prompt, ...names, sampling: probeSampling, signal }));
  if (generation.tokenIds.length === 0) throw new RolloutError('backend-failed', 'a probe was cut before its first token');
}

export async function within<T>(
  { signal, clock, timeoutMs = probeTimeoutMs / 2 }: TimeLimit,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const timeout = new AbortController();
  const late = new RolloutError('backend-failed', `a probe was not answered within ${timeoutMs / 1000} s`);
  const stop = clock.after(timeoutMs, () => timeout.abort(late));
  const either = AbortSignal.any([signal, timeout.signal]);
  try {
    return await raceSignal(work(either), either);
  } catch (error) {
    if (either.aborted) throw either.reason;
    throw error;
  } finally {
    stop();
  }
}
