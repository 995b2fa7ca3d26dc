// Converts a backend's record to its wire view.

import { type BackendProbe, type BackendRecord, explainLogprobs, logprobsOf, tokenRoutes } from '@millrace/engines';
import type { BackendView, CallProgressReport } from '@millrace/protocol';
import { type BackendLoad, toTime, type WorkerRecord } from '@millrace/store';

/** Without the key. `workers` are the live ones. */
export function toBackendView(backend: BackendRecord, context: BackendContext): BackendView {
  const { id, url, dialect, model, policyVersion, state, health, probe } = backend;
  const load = context.loads.find((one) => one.id === id);
  return {
    id,
    url,
    dialect,
    model: model ?? null,
    policy_version: policyVersion,
    logprobs_mode: logprobsOf(backend),
    logprobs_reason: explainLogprobs(backend),
    probe: toProbeView(probe),
    generation: probe?.generation ?? 1,
    route: probe?.route ?? tokenRoutes[dialect][0] ?? null,
    route_reason: probe?.routeReason ?? null,
    state,
    health: health?.brokenAtMs === undefined ? 'ok' : 'broken',
    broken_for: health?.brokenFor?.map(({ machine }) => machine) ?? [],
    last_error: health ? { message: health.error, at: toTime(health.errorAtMs) } : null,
    in_flight: load?.inFlight ?? 0,
    calls: context.workers.reduce((total, { report }) => total + (report?.calls?.[id] ?? 0), 0),
    call_progress: toProgress(context.workers.flatMap(({ report }) => report?.call_progress?.[id] ?? [])),
    held_for_cache: context.workers.reduce((total, { report }) => total + (report?.held_for_cache?.[id] ?? 0), 0),
    tokens: load?.tokens ?? 0,
    note: null,
  };
}

/** Over all workers that have calls on it. */
function toProgress(reports: readonly CallProgressReport[]): CallProgressReport | null {
  if (reports.length === 0) return null;
  const tokens = reports.flatMap(({ last_token_ms }) => last_token_ms ?? []);
  return {
    oldest_call_ms: Math.max(...reports.map(({ oldest_call_ms }) => oldest_call_ms)),
    last_token_ms: tokens.length === 0 ? null : Math.min(...tokens),
    tokens_per_s: reports.reduce((sum, { tokens_per_s }) => sum + tokens_per_s, 0),
  };
}

function toProbeView(probe: BackendProbe | undefined): BackendView['probe'] {
  if (probe?.atMs === undefined) return null;
  const {
    engine = null,
    version = null,
    model = null,
    contextTokens = null,
    tokenizer = 'unchecked',
    isSeveral: several = false,
    atMs,
  } = probe;
  const tokenizer_reason = probe.tokenizerReason ?? null;
  return { engine, version, model, context_length: contextTokens, tokenizer, tokenizer_reason, several, at: toTime(atMs) };
}

interface BackendContext {
  readonly loads: readonly BackendLoad[];
  readonly workers: readonly WorkerRecord[];
}
