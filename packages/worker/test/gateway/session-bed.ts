// A gateway session on fake backends, without a service, and the checks of its tokens.

import assert from 'node:assert/strict';
import { systemClock } from '@millrace/base/clock';
import { silentLog } from '@millrace/base/log';
import { Pace } from '@millrace/base/pace';
import type { BackendRecord } from '@millrace/engines';
import { findWire, joinReply, type ReplyEvent, type WholeReply } from '@millrace/gateway';
import { Ledger, openConversation } from '@millrace/model';
import { backendId, limits, type Segment, sampling } from '@millrace/protocol';
import { FakeBackend, type FakeBackendOptions, fakeLogprob, openFakeTokens, qwen3Folder } from '@millrace/testkit';
import { GatewaySession } from '../../src/gateway/gateway-session.ts';
import { BackendPool } from '../../src/inference/pool/pool.ts';
import { Sampler } from '../../src/inference/sampler.ts';

export const tokens = await openFakeTokens();
const conversation = await openConversation(await qwen3Folder());
const never = new AbortController().signal;

export interface SessionBed extends AsyncDisposable {
  readonly session: GatewaySession;
  readonly backends: readonly FakeBackend[];
  /** Of every line that was begun, also of those in which nothing was sampled. */
  readonly ledgers: readonly Ledger[];
  /** A chat completion. Rejects if the reply breaks off. */
  ask(body: Record<string, unknown>, options?: { readonly signal?: AbortSignal; onEvent?(event: ReplyEvent): void }): Promise<WholeReply>;
  /** From the next call on, these are the weights of all backends. */
  swap(version: number): void;
}

export async function openSessionBed(
  options: readonly Partial<FakeBackendOptions>[],
  more: Record<string, unknown> = {},
): Promise<SessionBed> {
  const backends = await Promise.all(
    options.map(async (one) => {
      const fake = new FakeBackend({ policy: ({ turn }) => ({ text: `turn ${turn}` }), ...one }, tokens);
      await fake.listen();
      return fake;
    }),
  );
  const pool = new BackendPool({ log: silentLog, pace: new Pace() });
  const toRecords = (policyVersion: number): BackendRecord[] =>
    backends.map(({ url }, index) => ({ id: backendId.parse(`b${index}`), url, dialect: 'vllm', policyVersion, state: 'up' }));
  pool.update(toRecords(0));
  const ledgers: Ledger[] = [];
  const openSampler = () => {
    const ledger = new Ledger();
    ledgers.push(ledger);
    return new Sampler({ ledger, pool, sessionId: 's', delayMs: 1 });
  };
  const session = new GatewaySession({
    conversation,
    sampling: sampling.parse({ max_tokens: 400 }),
    allow: [],
    limits: limits.parse({ max_context_tokens: 100_000 }),
    tally: { turns: 0, malformedCalls: 0, modelMs: 0, toolMs: 0 },
    clock: systemClock,
    pace: new Pace(),
    signal: never,
    openSampler,
    onTurn() {},
    ...more,
  });
  const found = findWire('POST', '/v1/chat/completions', new URLSearchParams());
  assert.ok(found);
  return {
    session,
    backends,
    ledgers,
    async ask(body, { signal = never, onEvent } = {}) {
      const events: ReplyEvent[] = [];
      const turn = await session.open(found.wire.parse(body, {}));
      await turn.run((event) => {
        events.push(event);
        onEvent?.(event);
      }, signal);
      return joinReply(events);
    },
    swap(version) {
      for (const backend of backends) backend.setWeights(version);
      pool.update(toRecords(version));
    },
    async [Symbol.asyncDispose]() {
      session[Symbol.dispose]();
      await pool[Symbol.asyncDispose]();
      for (const backend of backends) await backend[Symbol.asyncDispose]();
    },
  };
}

/** The segments of each branch. */
export function splitBranches(segments: readonly Segment[]): Segment[][] {
  const branches: Segment[][] = [];
  for (const segment of segments) {
    const branch = segment.branch ?? 0;
    branches[branch] = [...(branches[branch] ?? []), segment];
  }
  return branches;
}

/** Every sampled token has the logprob of its id, its place in its branch, and the weights that it names. */
export function checkTokens({ session, backends, ledgers }: SessionBed): void {
  for (const [branch, segments] of splitBranches(session.book.ledger.segments).entries()) {
    const ids: number[] = [];
    assert.equal(segments[0]?.kind, 'prompt');
    for (const { kind, tokenIds, logprobs, policy_versions: versions } of segments) {
      if (kind === 'sampled') {
        assert.equal(versions?.first, versions?.last);
        for (const [at, id] of tokenIds.entries())
          assert.equal(
            logprobs[at],
            fakeLogprob(ids.length + at, id, versions?.first ?? -1),
            `token ${ids.length + at} of branch ${branch}`,
          );
      }
      ids.push(...tokenIds);
    }
  }
  const contexts = new Set(ledgers.flatMap(({ segments }) => toContexts(segments)));
  for (const { requests } of backends)
    for (const { promptIds } of requests) assert.ok(contexts.has(promptIds.join()), 'a prompt that no line has');
}

/** The ids after each segment. */
function toContexts(segments: readonly Segment[]): string[] {
  const ids: number[] = [];
  return segments.map(({ tokenIds }) => {
    ids.push(...tokenIds);
    return ids.join();
  });
}
