// The two probes of a backend that may be down: whether its server reports itself healthy, and whether it generates a token.
// Each has a time limit.

import { definedOf, RolloutError, sampling } from '@millrace/protocol';
import { type Dispatcher, request } from 'undici';
import type { Clock } from '../../base/clock.ts';
import { raceSignal } from '../../base/race.ts';
import type { Backend, BackendRecord, GenerateRequest } from '../backends/backend.ts';
import { probeTimeoutMs } from './placements.ts';

export interface ProbeOptions {
  readonly signal: AbortSignal;
  readonly clock: Clock;
  readonly dispatcher: Dispatcher;
}

/** What a probe needs of the policy gate: servers are not sampled from while their weights change. */
export interface ProbeGate {
  opened(options: { readonly signal: AbortSignal }): Promise<void>;
  pass(options: { readonly signal: AbortSignal }): Promise<Disposable & { readonly cut: AbortSignal; readonly adapter?: string }>;
}

interface TimeLimit extends Pick<ProbeOptions, 'signal' | 'clock'> {
  readonly timeoutMs?: number;
}

/** GET /health, or /v1/models if the server or a router in front of it does not have that route. */
export async function checkHealth({ url, apiKey }: BackendRecord, options: ProbeOptions): Promise<void> {
  const get = async (path: string, signal: AbortSignal) => {
    const { statusCode, body } = await request(`${url}${path}`, {
      signal,
      headers: apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` },
      dispatcher: options.dispatcher,
    });
    await body.dump();
    return { path, statusCode };
  };
  const { path, statusCode } = await within(options, async (signal) => {
    const first = await get('/health', signal);
    return first.statusCode === 404 || first.statusCode === 405 ? await get('/v1/models', signal) : first;
  });
  if (statusCode >= 300) throw new RolloutError('backend-failed', `GET ${url}${path} answered ${statusCode}`);
}

/** Samples one token after a prompt of one token: it goes the whole way of a rollout's call and costs almost nothing. */
export async function tryOut(
  backend: Backend,
  { cut, adapter, ...options }: ProbeOptions & Pick<GenerateRequest, 'cut' | 'adapter'>,
): Promise<void> {
  const prompt = { promptJson: Buffer.from('1'), promptTokens: 1, maxTokens: 1, stopTokenIds: [], ...definedOf({ cut, adapter }) };
  const names = { sessionId: 'probe', requestId: `probe-${backend.id}` };
  const generation = await within(options, (signal) => backend.generate({ ...prompt, ...names, sampling: sampling.parse({}), signal }));
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
