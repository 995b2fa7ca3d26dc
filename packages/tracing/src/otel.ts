// Traces over OTLP, through the official SDK of OpenTelemetry. A collector that is
// slow or gone costs spans, never rollouts: they wait in a bounded queue, and the oldest are dropped.

import type { SpanAttributes, SpanStart, TraceSpan, Tracing } from '@millrace/base/trace-span';
import { type Attributes, context, type Span, SpanKind, SpanStatusCode, type Tracer, trace } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { defaultResource, resourceFromAttributes } from '@opentelemetry/resources';
import { BatchSpanProcessor, ParentBasedSampler, TraceIdRatioBasedSampler, TracerProvider } from '@opentelemetry/sdk-trace';

export interface TracingOptions {
  /** Of the collector, such as http://127.0.0.1:4318/v1/traces. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The share of rollouts that are traced, 0 to 1. */
  readonly share: number;
  /** What the collector shows as the source. */
  readonly attributes: SpanAttributes;
}

/** A trace that is still not sent after this time, when the process ends, is dropped. */
const flushMs = 3000;

export function openOtel({ url, headers, share, attributes }: TracingOptions): Tracing {
  const provider = new TracerProvider({
    resource: defaultResource().merge(resourceFromAttributes(toAttributes(attributes))),
    sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(share) }),
    spanProcessors: [
      new BatchSpanProcessor({
        exporter: new OTLPTraceExporter({ url, headers: { ...headers }, timeoutMillis: flushMs }),
        maxQueueSize: 8192,
        maxExportBatchSize: 512,
        scheduledDelayMillis: 1000,
        exportTimeoutMillis: flushMs,
      }),
    ],
  });
  const tracer = provider.getTracer('millrace');
  return {
    beginTrace(start) {
      const span = tracer.startSpan(start.name, { root: true, ...toOptions(start) });
      return span.isRecording() ? toTraceSpan(tracer, span) : undefined;
    },
    async [Symbol.asyncDispose]() {
      await provider.forceFlush({ timeoutMillis: flushMs }).catch(() => {}); // the collector is gone: these spans are lost
      await provider.shutdown().catch(() => {});
    },
  };
}

function toTraceSpan(tracer: Tracer, span: Span): TraceSpan {
  const below = trace.setSpan(context.active(), span);
  return {
    traceId: span.spanContext().traceId,
    begin: (start) => toTraceSpan(tracer, tracer.startSpan(start.name, toOptions(start), below)),
    note: (attributes) => void span.setAttributes(toAttributes(attributes)),
    end(errorType) {
      if (errorType !== undefined) span.setAttribute('error.type', errorType).setStatus({ code: SpanStatusCode.ERROR, message: errorType });
      span.end();
    },
  };
}

function toOptions({ isCall = false, attributes = {} }: SpanStart) {
  return { kind: isCall ? SpanKind.CLIENT : SpanKind.INTERNAL, attributes: toAttributes(attributes) };
}

function toAttributes(attributes: SpanAttributes): Attributes {
  return Object.fromEntries(
    Object.entries(attributes).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, typeof value === 'object' ? [...value] : value] as const],
    ),
  );
}
