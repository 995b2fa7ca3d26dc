// Metrics per backend: counters from the event log, gauges from the status.

import type { Event, ServiceStatus } from '@millrace/protocol';
import { Counter, Gauge, type Registry } from 'prom-client';
import { z } from 'zod';

interface BackendMetrics {
  push(event: Event): void;
  show(backends: ServiceStatus['backends']): void;
}

/** Lenient: a missing field counts as zero. */
const count = z.number().min(0).catch(0);
const trafficData = z.object({
  calls: count,
  retries: count,
  prompt_tokens: count,
  cached_tokens: count,
  expected_tokens: count,
  recomputed_tokens: count,
  cache_wait_ms: count,
  sampled_tokens: count,
  model_ms: count,
  errors: z.record(z.string(), count).catch({}),
});

export function openBackendMetrics(registry: Registry): BackendMetrics {
  const counters = openCounters(registry);
  const gauges = openGauges(registry);
  return {
    push({ kind, backend_id: backend, data }) {
      if (backend === undefined) return;
      if (kind === 'backend-traffic') countTraffic(counters, backend, trafficData.parse(data));
      if (kind === 'backend-break' && data.machine === undefined) counters.breaks.inc({ backend });
      if (kind === 'rollout-place') counters.moves.inc({ backend });
    },
    show(backends) {
      for (const gauge of Object.values(gauges)) gauge.reset();
      for (const { id: backend, in_flight, calls, held_for_cache, tokens, health, state } of backends) {
        gauges.inFlight.set({ backend }, in_flight);
        gauges.calls.set({ backend }, calls);
        gauges.held.set({ backend }, held_for_cache);
        gauges.tokens.set({ backend }, tokens);
        gauges.up.set({ backend }, health === 'ok' && state === 'up' ? 1 : 0);
      }
    },
  };
}

function openCounters(registry: Registry) {
  const counter = (name: string, help: string, ...labels: string[]) =>
    new Counter({ name: `millrace_backend_${name}_total`, help, labelNames: ['backend', ...labels], registers: [registry] });
  return {
    calls: counter('calls', 'Calls that ended, successful or not.'),
    retries: counter('retries', 'Calls made as a retry of a failed call.'),
    errors: counter('errors', 'Failed calls, by error code; busy when the backend asked to retry later.', 'code'),
    prompt: counter('prompt_tokens', 'Prompt tokens sent.'),
    cached: counter('cached_tokens', 'Prompt tokens found in the prefix cache, if the server reports them.'),
    expected: counter('expected_tokens', 'Prompt tokens that should have been in the prefix cache by the account of it.'),
    recomputed: counter('recomputed_tokens', 'Prompt tokens of earlier turns that the prefix cache had lost.'),
    cacheWait: counter('cache_wait_seconds', 'Time that rollouts waited for room in the KV cache.'),
    sampled: counter('sampled_tokens', 'Tokens sampled.'),
    seconds: counter('call_seconds', 'Time spent in successful calls, including time in the queue of the backend.'),
    breaks: counter('breaks', 'Times the backend was marked broken for all machines.'),
    moves: counter('moves', 'Running rollouts moved to it from another backend.'),
  };
}

function openGauges(registry: Registry) {
  const gauge = (name: string, help: string) =>
    new Gauge({ name: `millrace_backend_${name}`, help, labelNames: ['backend'], registers: [registry] });
  return {
    inFlight: gauge('in_flight', 'Rollouts running on the backend.'),
    calls: gauge('waiting_calls', 'Calls in progress.'),
    held: gauge('held_for_cache', 'Rollouts whose next turn waits for room in the KV cache.'),
    tokens: gauge('context_tokens', 'Context tokens of the rollouts running on the backend, as last reported.'),
    up: gauge('up', '1 if the backend accepts new rollouts, otherwise 0.'),
  };
}

function countTraffic(counters: ReturnType<typeof openCounters>, backend: string, data: z.infer<typeof trafficData>): void {
  counters.calls.inc({ backend }, data.calls);
  counters.retries.inc({ backend }, data.retries);
  counters.prompt.inc({ backend }, data.prompt_tokens);
  counters.cached.inc({ backend }, data.cached_tokens);
  counters.expected.inc({ backend }, data.expected_tokens);
  counters.recomputed.inc({ backend }, data.recomputed_tokens);
  counters.cacheWait.inc({ backend }, data.cache_wait_ms / 1000);
  counters.sampled.inc({ backend }, data.sampled_tokens);
  counters.seconds.inc({ backend }, data.model_ms / 1000);
  for (const [code, errors] of Object.entries(data.errors)) counters.errors.inc({ backend, code }, errors);
}
