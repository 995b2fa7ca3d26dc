// Takes traces over OTLP in JSON, as an exporter or a collector sends them, and says what is wrong with the trace of a rollout.

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gunzipSync } from 'node:zlib';
import { z } from 'zod';

const anyValue: z.ZodType<unknown> = z.lazy(() =>
  z.looseObject({
    stringValue: z.string().optional(),
    intValue: z.union([z.string(), z.number()]).optional(),
    doubleValue: z.number().optional(),
    boolValue: z.boolean().optional(),
    arrayValue: z.looseObject({ values: z.array(anyValue).optional() }).optional(),
  }),
);
const attribute = z.looseObject({ key: z.string(), value: anyValue });
const spanWire = z.looseObject({
  traceId: z.string(),
  spanId: z.string(),
  parentSpanId: z.string().default(''),
  name: z.string(),
  kind: z.int().default(0),
  startTimeUnixNano: z.string(),
  endTimeUnixNano: z.string(),
  attributes: z.array(attribute).default([]),
  status: z.looseObject({ code: z.int().default(0) }).default({ code: 0 }),
});
const tracesWire = z.looseObject({
  resourceSpans: z.array(
    z.looseObject({
      resource: z.looseObject({ attributes: z.array(attribute).default([]) }),
      scopeSpans: z.array(z.looseObject({ spans: z.array(spanWire) })),
    }),
  ),
});

export interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string;
  readonly name: string;
  readonly kind: number;
  readonly startMs: number;
  readonly endMs: number;
  readonly isError: boolean;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly resource: Readonly<Record<string, unknown>>;
}

export interface TraceReceiver extends AsyncDisposable {
  /** Takes POST requests. */
  readonly url: string;
  readonly spans: readonly ReceivedSpan[];
  /** Resolves once a root span with this trace has arrived: exporters send spans in the order of their ends. */
  rootOf(traceId: string): Promise<ReceivedSpan>;
}

export async function openTraceReceiver(): Promise<TraceReceiver> {
  const spans: ReceivedSpan[] = [];
  let arrived = Promise.withResolvers<void>();
  const server = createServer(async (request, reply) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const bytes = Buffer.concat(chunks);
    const body = request.headers['content-encoding'] === 'gzip' ? gunzipSync(bytes) : bytes;
    spans.push(...toSpans(tracesWire.parse(JSON.parse(body.toString('utf8')))));
    reply.setHeader('content-type', 'application/json').end('{}');
    arrived.resolve();
    arrived = Promise.withResolvers();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/traces`,
    spans,
    async rootOf(traceId) {
      for (;;) {
        const next = arrived.promise;
        const root = spans.find((span) => span.traceId === traceId && span.parentSpanId === '');
        if (root !== undefined) return root;
        await next;
      }
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function toSpans({ resourceSpans }: z.infer<typeof tracesWire>): ReceivedSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap((scope) =>
      scope.spans.map(({ traceId, spanId, parentSpanId, name, kind, startTimeUnixNano, endTimeUnixNano, attributes, status }) => ({
        ...{ traceId, spanId, parentSpanId, name, kind },
        startMs: Number(startTimeUnixNano) / 1e6,
        endMs: Number(endTimeUnixNano) / 1e6,
        isError: status.code === 2,
        attributes: toValues(attributes),
        resource: toValues(resource.attributes),
      })),
    ),
  );
}

function toValues(attributes: readonly z.infer<typeof attribute>[]): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, toValue(value)]));
}

function toValue(wire: unknown): unknown {
  const { stringValue, intValue, doubleValue, boolValue, arrayValue } = wire as {
    readonly stringValue?: string;
    readonly intValue?: string | number;
    readonly doubleValue?: number;
    readonly boolValue?: boolean;
    readonly arrayValue?: { readonly values?: readonly unknown[] };
  };
  if (arrayValue !== undefined) return (arrayValue.values ?? []).map(toValue);
  return stringValue ?? (intValue === undefined ? undefined : Number(intValue)) ?? doubleValue ?? boolValue;
}

interface ExpectedTrace {
  readonly traceId: string;
  readonly rolloutId: string;
  readonly turns: number;
}

/** What is wrong with the trace of a rollout with tool calls: the tree of its spans, and the attributes that the conventions require. */
export function checkRolloutTrace(spans: readonly ReceivedSpan[], { traceId, rolloutId, turns }: ExpectedTrace): string[] {
  const own = spans.filter((span) => span.traceId === traceId);
  const named = (name: string) => own.filter((span) => span.name === name || span.name.startsWith(`${name} `));
  const parents = new Map(own.map((span) => [span.spanId, span]));
  const faults: string[] = [];
  const expect = (isTrue: boolean, fault: string) => void (isTrue || faults.push(fault));
  const below = (name: string, parent: string) => {
    for (const span of named(name)) {
      const above = parents.get(span.parentSpanId);
      expect(above?.name === parent, `${span.name} is below ${above?.name ?? 'nothing'}, not ${parent}`);
      expect(
        above !== undefined && span.startMs >= above.startMs - 1 && span.endMs <= above.endMs + 1,
        `${span.name} is outside of ${parent}`,
      );
    }
  };
  expect(named('rl.sample').length === 1, `${named('rl.sample').length} roots`);
  for (const stage of ['rl.sample.init', 'rl.sample.run', 'rl.reward']) {
    expect(named(stage).length === 1, `${named(stage).length} spans ${stage}`);
    below(stage, 'rl.sample');
  }
  expect(named('rl.sample.turn').length === turns, `${named('rl.sample.turn').length} turns, not ${turns}`);
  below('rl.sample.turn', 'rl.sample.run');
  expect(named('chat').length >= turns, `${named('chat').length} model calls`);
  below('chat', 'rl.sample.turn');
  expect(named('execute_tool').length > 0, 'no tool call');
  below('execute_tool', 'rl.sample.turn');
  const require = (name: string, ...keys: string[]) => {
    for (const span of named(name)) for (const key of keys) expect(span.attributes[key] !== undefined, `${span.name} has no ${key}`);
  };
  require('rl.sample', 'rl.sample.id', 'rl.environment.name', 'rl.reward.score', 'rl.sample.turns', 'rl.sample.output_tokens');
  require('chat', 'gen_ai.operation.name', 'gen_ai.provider.name', 'gen_ai.request.model', 'gen_ai.usage.input_tokens');
  require('chat', 'gen_ai.usage.output_tokens', 'gen_ai.response.finish_reasons', 'server.address', 'server.port', 'rl.policy.version');
  require('execute_tool', 'gen_ai.operation.name', 'gen_ai.tool.name', 'gen_ai.tool.call.id', 'gen_ai.tool.type');
  expect(named('rl.sample')[0]?.attributes['gen_ai.conversation.id'] === rolloutId, 'it is the trace of another rollout');
  expect(
    own.every(({ resource }) => resource['service.name'] === 'millrace'),
    'the service has another name',
  );
  expect(
    named('chat').every(({ kind }) => kind === 3),
    'a model call is not a client span',
  );
  return faults;
}
