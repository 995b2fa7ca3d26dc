// The one form of every wire: what a client asked, the events of a reply, and the errors. Wires translate to and from it, and know
// nothing of each other.

import type { Message, ToolSpec } from '@millrace/protocol';

export const wireNames = ['chat', 'responses', 'anthropic', 'gemini'] as const;
export type WireName = (typeof wireNames)[number];

export interface WireRequest {
  /** As the client named it. */
  readonly model: string;
  /** Ids of tool calls are those that the client sent. */
  readonly messages: readonly Message[];
  readonly tools: readonly ToolSpec[];
  /** What the client asked for, under the names of our sampling parameters; what has no such name, under its own. */
  readonly asked: Readonly<Record<string, unknown>>;
  readonly isStreamed: boolean;
  /** Whether a stream of chat completions ends with its usage. */
  readonly wantsUsage: boolean;
}

export interface ReplyUsage {
  readonly promptTokens: number;
  /** All sampled tokens, reasoning included. */
  readonly sampledTokens: number;
  /** Absent if the backend does not say. */
  readonly cachedTokens?: number;
}

/** `calls`: it ended by itself and calls tools. */
export type ReplyFinish = 'stop' | 'length' | 'calls';

/** Text and arguments arrive in pieces; the pieces of one part are never mixed with another part. */
export type ReplyEvent =
  | { readonly kind: 'reasoning'; readonly text: string }
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'call'; readonly id: string; readonly name: string }
  | { readonly kind: 'arguments'; readonly text: string }
  | { readonly kind: 'keep-alive' }
  | { readonly kind: 'end'; readonly finish: ReplyFinish; readonly usage: ReplyUsage };

export interface ReplyHead {
  /** Without the prefix that a wire gives it. */
  readonly id: string;
  readonly model: string;
  readonly createdS: number;
  /** Of the prompt: some wires begin a stream with it. */
  readonly promptTokens: number;
}

export interface WholeReply {
  readonly reasoning: string;
  readonly text: string;
  readonly calls: readonly { readonly id: string; readonly name: string; readonly arguments: string }[];
  readonly finish: ReplyFinish;
  readonly usage: ReplyUsage;
}

export interface Wire {
  readonly name: WireName;
  /** Throws a GatewayError that names the field. */
  parse(body: unknown, address: WireAddress): WireRequest;
  toReply(reply: WholeReply, head: ReplyHead): unknown;
  openStream(head: ReplyHead, request: WireRequest): WireStream;
  toError(error: GatewayError): unknown;
  /** An error in a stream that has begun. */
  toStreamError(error: GatewayError): string;
}

/** What the address says, where a wire puts it there. */
export interface WireAddress {
  readonly model?: string;
  readonly isStreamed?: boolean;
}

/** Server-sent events, as text. */
export interface WireStream {
  start(): string;
  write(event: ReplyEvent): string;
}

export type GatewayErrorKind =
  | 'invalid'
  | 'context-length'
  | 'unauthorized'
  | 'not-found'
  | 'too-large'
  | 'busy'
  | 'ended'
  | 'failed'
  | 'no-websocket';

const statuses: Readonly<Record<GatewayErrorKind, number>> = {
  invalid: 400,
  'context-length': 400,
  unauthorized: 401,
  'not-found': 404,
  'too-large': 413,
  busy: 429,
  ended: 410,
  failed: 502,
  'no-websocket': 426,
};

/** What a client reads, in the shape of its wire. */
export class GatewayError extends Error {
  readonly kind: GatewayErrorKind;
  /** The field of the request. */
  readonly param: string | undefined;

  constructor(kind: GatewayErrorKind, message: string, param?: string) {
    super(message);
    this.name = 'GatewayError';
    this.kind = kind;
    this.param = param;
  }

  get status(): number {
    return statuses[this.kind];
  }
}

/** Joins the events of a reply. Throws if it has no end. */
export function joinReply(events: Iterable<ReplyEvent>): WholeReply {
  let [reasoning, text] = ['', ''];
  const calls: { id: string; name: string; arguments: string }[] = [];
  for (const event of events) {
    if (event.kind === 'reasoning') reasoning += event.text;
    else if (event.kind === 'text') text += event.text;
    else if (event.kind === 'call') calls.push({ id: event.id, name: event.name, arguments: '' });
    else if (event.kind === 'arguments') {
      const last = calls.at(-1);
      if (last) last.arguments += event.text;
    } else if (event.kind === 'end') return { reasoning, text, calls, finish: event.finish, usage: event.usage };
  }
  throw new GatewayError('failed', 'the reply has no end');
}
