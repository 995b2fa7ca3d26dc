// The identity soak: rollouts run while backends are stopped, upgraded, swapped for another model or mode and restarted at random, idle and
// busy, and the policy is paused in mid-turn. Every recorded logprob is then computed again for the server that its record names, in the
// mode that the record names. MILLRACE_SOAK_S says for how many seconds; 60 by default.

import { setTimeout as pause } from 'node:timers/promises';
import type { Event, RolloutView, Trajectory } from '@millrace/protocol';
import { fakeLogprob, openFakeTokens, qwen3Folder, readPastEvents, TestService } from '@millrace/testkit';
import type { BenchReport } from '../report/report.ts';
import { type ServerKind, SwappedBackends, toWeights } from './swapped-backends.ts';

const temperature = 0.5;
const seconds = Number(process.env.MILLRACE_SOAK_S ?? 60);
const dialects = { a: 'vllm', b: 'vllm', c: 'vllm-completions', d: 'sglang', e: 'llamacpp' } as const;

interface Audit {
  segments: number;
  tokens: number;
  /** Tokens whose record does not say what their logprobs are of. */
  unsaid: number;
  /** Segments with a logprob that is not that of the server and the mode in their record, and their tokens. */
  lies: string[];
  lyingTokens: number;
  /** Those that there would be if each record named the server that joined. */
  naive: number;
  retried: number;
}

export async function runIdentityBench(): Promise<BenchReport> {
  const random = makeRandom(Number(process.env.MILLRACE_SOAK_SEED ?? 1));
  await using service = await TestService.open({
    ...{ workers: 2, tokenizer: qwen3Folder(), inference: { breakAfter: 3 } },
    ...{ pipeline: { retryDelayMs: 50, runSlots: 24 }, sandbox: { warm: { sandboxes: 0 } } },
  });
  const { client } = service;
  await using backends = new SwappedBackends(await openFakeTokens(), random);
  for (const [id, dialect] of Object.entries(dialects)) await backends.open(id, dialect, client);
  const views: RolloutView[] = [];
  let isOver = false;
  const load = submitAll(service, views, () => isOver);
  const endAt = performance.now() + 1000 * seconds;
  while (performance.now() < endAt) {
    await backends.swapOne(client);
    await pause(1200 * random());
    if (random() < 0.1) {
      await client.policy.pause({ mode: random() < 0.5 ? 'abort' : 'wait' });
      await client.policy.resume();
    }
  }
  isOver = true;
  await load;
  const audit = makeAudit();
  for (const { id, state } of views) if (state === 'done') auditOne(await client.trajectory(id), backends.first, audit);
  return toReport({ audit, views, swaps: backends.swaps, changes: await readPastEvents(service.client, 'backend-changed') });
}

/** Bursts with pauses in between, so that backends are idle at times. */
async function submitAll({ client }: TestService, views: RolloutView[], isOver: () => boolean): Promise<void> {
  for (let burst = 0; !isOver(); burst += 1) {
    const submissions = Array.from({ length: 12 }, (_, i) => ({
      ...{ id: `soak-${burst}-${i}`, scenario: 'math', task: { question: `What is ${burst} + ${i}?`, answer: `${burst + i}` } },
      ...{ sampling: { temperature, max_tokens: 64 }, limits: { max_retries: 50 } },
    }));
    for await (const view of await client.run(submissions)) views.push(view);
    if (burst % 3 === 2) await pause(1500);
  }
}

function makeAudit(): Audit {
  return { segments: 0, tokens: 0, unsaid: 0, lies: [], lyingTokens: 0, naive: 0, retried: 0 };
}

function auditOne({ rolloutId, segments, provenances = [] }: Trajectory, first: ReadonlyMap<string, ServerKind>, audit: Audit): void {
  let position = 0;
  for (const { kind, tokenIds, logprobs, backend = '', provenance = -1, retries = 0 } of segments) {
    const begin = position;
    position += tokenIds.length;
    const of = provenances[provenance];
    if (kind !== 'sampled' || !of) continue;
    audit.segments += 1;
    audit.tokens += tokenIds.length;
    audit.retried += retries > 0 ? 1 : 0;
    const { engine_model: model, engine_version: version, logprobs_mode: mode } = of;
    const isRight = (named: ServerKind) => {
      const source = { weights: toWeights(named.model, named.version), temperature: named.isProcessed ? temperature : 1 };
      return tokenIds.every((id, i) => logprobs[i] === fakeLogprob(begin + i, id, source));
    };
    const joined = first.get(backend);
    if (joined && !isRight(joined)) audit.naive += tokenIds.length;
    // A record without a mode says nothing that could be wrong, if the server is right in one of them.
    const modes = mode === 'unknown' ? [true, false] : [mode === 'processed'];
    if (mode === 'unknown') audit.unsaid += tokenIds.length;
    if (modes.some((isProcessed) => isRight({ model: model ?? '', version: version ?? '', isProcessed }))) continue;
    audit.lyingTokens += tokenIds.length;
    audit.lies.push(`${rolloutId} on ${backend}: ${version} ${model} ${mode}, generation ${of.generation}`);
  }
}

interface Soak {
  readonly audit: Audit;
  readonly views: readonly RolloutView[];
  readonly swaps: SwappedBackends['swaps'];
  readonly changes: readonly Event[];
}

function toReport({ audit, views, swaps, changes }: Soak): BenchReport {
  const done = views.filter(({ state }) => state === 'done').length;
  const failed = views
    .filter(({ state }) => state === 'failed')
    .map(({ failure }) => `${failure?.code}: ${failure?.message.slice(0, 120)}`);
  const sum = swaps.idle + swaps.busy;
  return {
    title: `Which server sampled: ${done} rollouts while backends become others`,
    rows: [
      { what: 'sampled tokens whose record names another server or mode', unit: 'tokens', samples: [audit.lyingTokens] },
      { what: 'the same if records named the server that joined', unit: 'tokens', samples: [audit.naive] },
      { what: 'sampled tokens, all computed again', unit: 'tokens', samples: [audit.tokens] },
      { what: 'of these without a mode in their record', unit: 'tokens', samples: [audit.unsaid] },
    ],
    targets: [
      {
        claim: `0 segments of ${audit.segments} name another server or mode${describe(audit.lies)}`,
        kept: audit.lies.length === 0 && audit.tokens > 0,
      },
      { claim: `every rollout is done${describe(failed)}`, kept: failed.length === 0 },
    ],
    notes: [
      `${seconds} s, five backends (vLLM on both routes, SGLang and llama.cpp as fakes), temperature ${temperature}. ${sum} restarts, ${swaps.idle} of an idle backend and ${swaps.busy} of a busy one: ` +
        `${swaps.versions} as another version, ${swaps.modes} with another mode of logprobs, ${swaps.models} with another model, ${swaps.same} unchanged. ` +
        `${changes.length} events say \`backend-changed\`; ${audit.retried} of ${audit.segments} segments were sampled after a failed call.`,
    ],
  };
}

const describe = (some: readonly string[]): string => (some.length === 0 ? '' : ` (${some.slice(0, 8).join('; ')})`);

function makeRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}
