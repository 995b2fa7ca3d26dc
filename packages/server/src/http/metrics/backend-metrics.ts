// Metrics of each backend: counters from the event log as it goes by, gauges from the status.

import type { Event, ServiceStatus } from '@millrace/protocol';
import { Counter, Gauge, type Registry } from 'prom-client';
import { z } from 'zod';

export interface BackendMetrics {
  push(event: Event): void;
  show(backends: ServiceStatus['backends']): void;
}

/** Lenient: what an event lacks is counted as nothing. */
const count = z.number().min(0).catch(0);
const trafficData = z.object({
  calls: count,
  retries: count,
  prompt_tokens: count,
  cached_tokens: count,
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
      if (kind === 'backend-break') counters.breaks.inc({ backend });
      if (kind === 'rollout-place') counters.moves.inc({ backend });
    },
    show(backends) {
      for (const gauge of Object.values(gauges)) gauge.reset();
      for (const { id: backend, in_flight, calls, tokens, health, state } of backends) {
        gauges.inFlight.set({ backend }, in_flight);
        gauges.calls.set({ backend }, calls);
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
    calls: counter('calls', 'Calls that ended, well or badly.'),
    retries: counter('retries', 'Calls made again after one that failed.'),
    errors: counter('errors', 'Calls that failed, by error code; busy where it asked for patience.', 'code'),
    prompt: counter('prompt_tokens', 'Tokens of the contexts that were sent.'),
    cached: counter('cached_tokens', 'Those of them that its prefix cache had, where the server says so.'),
    sampled: counter('sampled_tokens', 'Tokens sampled; their rate is its tokens per second.'),
    seconds: counter('call_seconds', 'Time in calls that were answered, waiting in its queue included.'),
    breaks: counter('breaks', 'Times it was found broken.'),
    moves: counter('moves', 'Running rollouts that came to it from another backend.'),
  };
}

function openGauges(registry: Registry) {
  const gauge = (name: string, help: string) =>
    new Gauge({ name: `millrace_backend_${name}`, help, labelNames: ['backend'], registers: [registry] });
  return {
    inFlight: gauge('in_flight', 'Rollouts that run on each backend.'),
    calls: gauge('waiting_calls', 'Calls that wait for its answer.'),
    tokens: gauge('context_tokens', 'The contexts of the rollouts that run on it, as last heard.'),
    up: gauge('up', 'Whether it gets new rollouts.'),
  };
}

function countTraffic(counters: ReturnType<typeof openCounters>, backend: string, data: z.infer<typeof trafficData>): void {
  counters.calls.inc({ backend }, data.calls);
  counters.retries.inc({ backend }, data.retries);
  counters.prompt.inc({ backend }, data.prompt_tokens);
  counters.cached.inc({ backend }, data.cached_tokens);
  counters.sampled.inc({ backend }, data.sampled_tokens);
  counters.seconds.inc({ backend }, data.model_ms / 1000);
  for (const [code, errors] of Object.entries(data.errors)) counters.errors.inc({ backend, code }, errors);
}
