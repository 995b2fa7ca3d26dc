// What a reply of 4,096 tokens costs the event loop, with the chunks that the real vLLM sends: an event for each token, for 8 or for
// 64 tokens, and no stream at all. And for how long the largest replies block it.

import { Worker } from 'node:worker_threads';
import { silentLog } from '@millrace/base/log';
import { Pace } from '@millrace/base/pace';
import { type BackendRecord, openVllmBackend } from '@millrace/engines';
import { backendId, type Dialect, sampling } from '@millrace/protocol';
import { findRecording, measureLoopBlock } from '@millrace/testkit';
import { type BenchReport, type BenchRow, percentile } from '../report/report.ts';
import type { Replies } from './reply-server.ts';

const tokens = 4096;
const perEvent = 64;
/** Where only closing the connection aborts a call. */
const perCutEvent = 8;
const rounds = 3;
/** Calls at the same time. */
const calls = 16;
const experts = { promptTokens: 8192, layers: 60, perLayer: 8 };
const promptTokens = 16;

interface Kind {
  readonly what: string;
  readonly path: string;
  readonly dialect: Dialect;
  /** Sent so that it can be cut. */
  readonly isCuttable: boolean;
}

const kinds: readonly Kind[] = [
  { what: 'generate, an event for each token', path: 'generate-1', dialect: 'vllm', isCuttable: true },
  { what: `generate, an event for ${perEvent} tokens`, path: 'generate-64', dialect: 'vllm', isCuttable: true },
  { what: 'generate, not streamed', path: 'generate-whole', dialect: 'vllm', isCuttable: false },
  { what: 'completions, an event for each token', path: 'completions-1', dialect: 'vllm-completions', isCuttable: true },
  { what: `completions, an event for ${perCutEvent} tokens`, path: 'completions-8', dialect: 'vllm-completions', isCuttable: true },
];

export async function runReplyCostBench(): Promise<BenchReport> {
  await using server = await openReplyServer(makeReplies());
  const rows: BenchRow[] = [];
  const blocks: BenchRow[] = [];
  for (const kind of kinds) {
    const call = openCalls(`${server.url}/${kind.path}`, kind);
    await call(calls); // warms up the compiler
    const [cpu, block]: [number[], number[]] = [[], []];
    for (let round = 0; round < rounds; round++) {
      const seen = await measure(() => call(calls));
      cpu.push(seen.cpuMs / calls);
      block.push(seen.blockMs);
    }
    rows.push({ what: kind.what, unit: 'ms CPU', samples: cpu, ...(rows.length > 0 ? { against: 0 } : {}) });
    blocks.push({ what: `${kind.what}: longest block of the event loop, ${calls} replies at once`, unit: 'ms', samples: block });
  }
  const routed = openExpertsCall(`${server.url}/experts`);
  await routed();
  const routedBlocks: number[] = [];
  for (let round = 0; round < rounds; round++) routedBlocks.push((await measure(routed)).blockMs);
  blocks.push({ what: '15 MB of routed experts: longest block of the event loop', unit: 'ms', samples: routedBlocks });
  return {
    title: 'A reply of 4,096 tokens, with the chunks of the real vLLM',
    rows: [...rows, ...blocks],
    targets: judge(rows, blocks),
    notes: [
      'CPU of the thread that reads the replies, for each reply. The server is another thread, and writes one event to each connection in a millisecond.',
    ],
  };
}

function judge(rows: readonly BenchRow[], blocks: readonly BenchRow[]) {
  const median = (row: BenchRow | undefined) => percentile(row?.samples ?? [], 0.5);
  const longest = Math.max(...blocks.map(median));
  return [
    { claim: `no reply blocks the event loop for more than 20 ms, routed experts included (${longest.toFixed(1)} ms)`, kept: longest < 20 },
    {
      claim: `an event for ${perEvent} tokens costs less than a quarter of an event for each (${median(rows[1]).toFixed(1)} ms)`,
      kept: median(rows[1]) < median(rows[0]) / 4,
    },
  ];
}

/** The CPU of this thread, and the longest turn of the event loop in a second run. */
async function measure(work: () => Promise<void>): Promise<{ readonly cpuMs: number; readonly blockMs: number }> {
  const before = process.threadCpuUsage();
  await work();
  const cpuMs = toMs(process.threadCpuUsage(before));
  return { cpuMs, blockMs: await measureLoopBlock(work) };
}

function toMs({ user, system }: NodeJS.CpuUsage): number {
  return (user + system) / 1000;
}

function openCalls(url: string, { dialect, isCuttable }: Kind): (count: number) => Promise<void> {
  const backend = openVllmBackend(makeRecord(url, dialect), { log: silentLog, pace: new Pace() });
  const promptJson = Buffer.from(Array(promptTokens).fill(1).join());
  const base = { promptJson, promptTokens, sampling: sampling.parse({}), maxTokens: tokens, stopTokenIds: [], sessionId: 'bench' };
  return async (count) => {
    const one = async (_: unknown, i: number) => {
      const { signal } = new AbortController();
      const request = { ...base, requestId: `r${i}`, signal, ...(isCuttable ? { cut: new AbortController().signal } : {}) };
      const { tokenIds } = await backend.generate(request);
      if (tokenIds.length !== tokens) throw new Error(`${tokenIds.length} tokens`);
    };
    await Promise.all(Array.from({ length: count }, one));
  };
}

function openExpertsCall(url: string): () => Promise<void> {
  const backend = openVllmBackend(makeRecord(url, 'vllm'), { log: silentLog, pace: new Pace() });
  const promptJson = Buffer.from(Array(experts.promptTokens).fill(1).join());
  return async () => {
    const names = { sessionId: 'bench', requestId: 'r', signal: new AbortController().signal };
    const asked = { sampling: sampling.parse({ routed_experts: true }), maxTokens: 64, stopTokenIds: [] };
    const { routedExperts } = await backend.generate({ promptJson, promptTokens: experts.promptTokens, ...asked, ...names });
    if (!routedExperts) throw new Error('no experts');
  };
}

function makeRecord(url: string, dialect: Dialect): BackendRecord {
  return { id: backendId.parse('bench'), url, dialect, policyVersion: 0, state: 'up' };
}

/** Every reply is a recorded one with more tokens. */
function makeReplies(): Replies {
  const ids = Array.from({ length: tokens }, (_, i) => 100 + ((i * 7919) % 40_000));
  const usage = { prompt_tokens: promptTokens, completion_tokens: tokens, total_tokens: promptTokens + tokens };
  const done = ['data: [DONE]\n\n'];
  const stream = (name: string, size: number, fill: (choice: ReplyFields, part: readonly number[]) => ReplyFields) => {
    const [event] = findRecording('vllm', name).exchanges[0]?.reply?.events ?? [];
    const shape = JSON.parse(event?.slice('data: '.length) ?? '{}');
    const write = (changes: ReplyFields) => `data: ${JSON.stringify({ ...shape, ...changes })}\n\n`;
    const parts = Array.from({ length: tokens / size }, (_, i) => ids.slice(i * size, (i + 1) * size));
    const events = parts.map((part, i) => {
      const finish_reason = i === parts.length - 1 ? 'length' : null;
      return write({ choices: [{ ...fill(shape.choices[0], part), finish_reason }] });
    });
    return [...events, write({ choices: [], usage }), ...done];
  };
  const body = findRecording('vllm', 'generate-greedy').exchanges[0]?.reply?.body as { readonly choices: readonly ReplyFields[] };
  const whole = {
    ...body,
    usage,
    choices: [{ ...fillGenerate(body.choices[0] ?? {}, ids), finish_reason: 'length', weight_versions: null }],
  };
  return {
    'generate-1': stream('generate-stream', 1, fillGenerate),
    'generate-64': stream('generate-stream', perEvent, fillGenerate),
    'generate-whole': [JSON.stringify(whole)],
    'completions-1': stream('completions-stream', 1, fillCompletion),
    'completions-8': stream('completions-stream', perCutEvent, fillCompletion),
    experts: [JSON.stringify(makeExpertsReply(whole))],
  };
}

type ReplyFields = Record<string, unknown>;

function fillGenerate(choice: ReplyFields, part: readonly number[]): ReplyFields {
  const content = part.map((token_id) => {
    const entry = { token_id, logprob: -(token_id % 977) / 311, rank: 1 };
    return { ...entry, top_logprobs: [entry] };
  });
  return { ...choice, token_ids: part, logprobs: { content } };
}

function fillCompletion(choice: ReplyFields, part: readonly number[]): ReplyFields {
  const names = part.map((id) => `token_id:${id}`);
  const values = part.map((id) => -(id % 977) / 311);
  const top_logprobs = names.map((name, i) => ({ [name]: values[i] }));
  return { ...choice, text: ' word', logprobs: { text_offset: part.map(() => 0), token_logprobs: values, tokens: names, top_logprobs } };
}

/** A prompt of 8,192 tokens and one sampled token, with 60 layers of 8 experts as int32. */
function makeExpertsReply(whole: ReplyFields & { readonly choices: readonly ReplyFields[] }): ReplyFields {
  const { promptTokens: rows, layers, perLayer } = experts;
  const numbers = Int32Array.from({ length: rows * layers * perLayer }, (_, i) => i % 128);
  const head = `{'descr': '<i4', 'fortran_order': False, 'shape': (${rows}, ${layers}, ${perLayer}), }`.padEnd(117).concat('\n');
  const start = Buffer.from('\x93NUMPY\x01\x00', 'latin1');
  const npy = Buffer.concat([start, Buffer.of(head.length, 0), Buffer.from(head), Buffer.from(numbers.buffer)]);
  const choice = { ...fillGenerate(whole.choices[0] ?? {}, [7]), finish_reason: 'stop', routed_experts: npy.toString('base64') };
  return { ...whole, usage: { prompt_tokens: rows, completion_tokens: 1 }, choices: [choice] };
}

async function openReplyServer(replies: Replies): Promise<AsyncDisposable & { readonly url: string }> {
  const worker = new Worker(new URL('./reply-server.ts', import.meta.url), { workerData: replies });
  const port = await new Promise<number>((resolve, reject) => worker.once('message', resolve).once('error', reject));
  return {
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      await worker.terminate();
    },
  };
}
