// The cost of one turn without the model: build the request, send it, parse the reply, append it, tokenize the observation. Measured
// at three sizes of context, compared with services that rebuild the request from their ids or from their messages.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { silentLog } from '@millrace/base/log';
import { Pace } from '@millrace/base/pace';
import { type Backend, type BackendRecord, openVllmBackend } from '@millrace/engines';
import { Ledger, type LocalConversation, openConversation } from '@millrace/model';
import { backendId, type Message, sampling } from '@millrace/protocol';
import { makeRandom, qwen3Folder } from '@millrace/testkit';
import { BackendPool, PolicyGate, Sampler } from '@millrace/worker';
import { type BenchReport, type BenchRow, percentile } from '../report/report.ts';

const sizes = [1_000, 16_000, 64_000];
const turnsEach = 100;
const warmUps = 10;
/** After one, the compiler is still at work, and the more code there is, the longer. */
const warmUpRounds = 8;
const tokensPerTurn = 64;
const observationTokens = 200;

setFlagsFromString('--expose-gc');
const collectGarbage: () => void = runInNewContext('gc');

export async function runTurnCostBench(): Promise<BenchReport> {
  const conversation = await openConversation(qwen3Folder());
  await using fake = await spawnBackend();
  const deps = { log: silentLog, pace: new Pace() };
  await using pool = new BackendPool(deps);
  const record: BackendRecord = { id: backendId.parse('fake'), url: fake.url, dialect: 'vllm', policyVersion: 0, state: 'up' };
  pool.update([record]);
  const bed = { conversation, pool, backend: openVllmBackend(record, deps), random: makeRandom(1) };
  const rows: BenchRow[] = [];
  for (let round = 0; round < warmUpRounds; round++) await measureAll(bed, makePast(bed, 1_000));
  for (const size of sizes) {
    const { rebuilt, stringified, ours } = await measureAll(bed, makePast(bed, size));
    const base = rows.length;
    for (const [i, unit] of (['ms CPU', 'ms wall'] as const).entries()) {
      const pick = (samples: readonly TurnSample[]) => samples.map((sample) => (i === 0 ? sample.cpuMs : sample.wallMs));
      rows.push({ what: `${size / 1000}k context, messages rendered and tokenised again`, unit, samples: pick(rebuilt) });
      rows.push({ what: `${size / 1000}k context, ids written as JSON again`, unit, samples: pick(stringified) });
      rows.push({ what: `${size / 1000}k context, Millrace`, unit, samples: pick(ours), against: base + 3 * i });
    }
  }
  return { title: "A turn's cost to the service", rows, targets: judge(rows), notes: [describeTurn()] };
}

interface Bed {
  readonly conversation: LocalConversation;
  readonly pool: BackendPool;
  readonly backend: Backend;
  readonly random: () => number;
}

interface EarlierTurns {
  readonly messages: readonly Message[];
  readonly tokenIds: Int32Array;
}

interface TurnSample {
  readonly cpuMs: number;
  readonly wallMs: number;
}

async function measureAll(bed: Bed, past: EarlierTurns) {
  const rebuilt = await measure(() => prepareFromMessages(bed, past), turnsEach / 10);
  const stringified = await measure(() => prepareFromIds(bed, past), turnsEach);
  const ours = await measure(() => prepareFromLedger(bed, past), turnsEach);
  return { rebuilt, stringified, ours };
}

/**
 * All turns are prepared before the measurement, so that those of a row have the same context. Their garbage, a megabyte each at 64k
 * tokens, is collected before it too; otherwise it would be charged to random turns.
 */
async function measure(prepare: () => () => Promise<void>, count: number): Promise<TurnSample[]> {
  const samples: TurnSample[] = [];
  const turns = Array.from({ length: warmUps + count }, prepare);
  collectGarbage();
  for (const [i, turn] of turns.entries()) {
    const startedAt = performance.now();
    const cpu = process.cpuUsage();
    await turn();
    const { user, system } = process.cpuUsage(cpu);
    if (i >= warmUps) samples.push({ cpuMs: (user + system) / 1000, wallMs: performance.now() - startedAt });
  }
  return samples;
}

function prepareFromLedger(bed: Bed, past: EarlierTurns): () => Promise<void> {
  const sampler = begin(bed, past.tokenIds);
  const observation = makeObservation(bed);
  return async () => {
    await sampleOnce(sampler, bed);
    sampler.ledger.appendObservation(bed.conversation.deltaIds([observation]));
    sampler[Symbol.dispose]();
  };
}

/** Keeps ids as numbers: the request's JSON is serialized from all of them each time. */
function prepareFromIds(bed: Bed, past: EarlierTurns): () => Promise<void> {
  const ids = Array.from(past.tokenIds);
  const observation = makeObservation(bed);
  return async () => {
    ids.push(...(await generateFrom(bed, ids)), ...bed.conversation.deltaIds([observation]).tokenIds);
  };
}

/** Keeps messages: the whole conversation is rendered and tokenized for every request. */
function prepareFromMessages(bed: Bed, past: EarlierTurns): () => Promise<void> {
  const messages = [...past.messages, makeObservation(bed)];
  return async () => {
    const tokenIds = await generateFrom(bed, Array.from(bed.conversation.openingIds(messages, []).tokenIds));
    messages.push({ role: 'assistant', content: bed.conversation.decodeTurn(tokenIds) });
  };
}

async function generateFrom({ backend, conversation }: Bed, ids: readonly number[]): Promise<Int32Array> {
  const { tokenIds } = await backend.generate({
    promptJson: Buffer.from(JSON.stringify(ids).slice(1, -1)),
    promptTokens: ids.length,
    sampling: sampling.parse({}),
    maxTokens: 4096,
    stopTokenIds: conversation.stopTokenIds,
    sessionId: 'bench',
    requestId: 'bench',
    signal: new AbortController().signal,
  });
  return tokenIds;
}

/** With a gate a turn is streamed, as in a worker, so that it can be cut. */
function openGate(): PolicyGate {
  const gate = new PolicyGate();
  gate.update({ state: 'running', pause: 0, flushes: 0, policyVersion: 0 });
  return gate;
}

function begin({ pool }: Bed, tokenIds: ArrayLike<number>): Sampler {
  const ledger = new Ledger();
  ledger.appendPrompt({ tokenIds, text: '', messages: [] });
  return new Sampler({ ledger, pool, sessionId: 'bench', gate: openGate() });
}

async function sampleOnce(sampler: Sampler, { conversation }: Bed): Promise<Int32Array> {
  const signal = new AbortController().signal;
  const generation = await sampler.sample({
    sampling: sampling.parse({}),
    maxTokens: 4096,
    stopTokenIds: conversation.stopTokenIds,
    signal,
  });
  sampler.ledger.appendSampled({ ...generation, text: conversation.decodeTurn(generation.tokenIds), messages: [] });
  return generation.tokenIds;
}

function makePast(bed: Bed, size: number): EarlierTurns {
  const messages: Message[] = [{ role: 'user', content: 'Make the tests pass.' }];
  for (let tokens = 0; tokens < size; tokens += observationTokens + 20) {
    messages.push({ role: 'assistant', content: 'Let me look at what is there.' }, makeObservation(bed));
  }
  const { tokenIds } = bed.conversation.openingIds(messages, []);
  return { messages, tokenIds: tokenIds.slice(-size) };
}

function makeObservation({ random }: Bed): Message {
  const words = [
    'error',
    ' in',
    ' module',
    '/usr',
    '/lib',
    '.py',
    ':',
    '\n',
    ' return',
    ' value',
    ' test',
    '_case',
    ' =',
    ' None',
    '(',
    ')',
    ' assert',
  ];
  return { role: 'tool', content: Array.from({ length: observationTokens }, () => words[Math.floor(random() * words.length)]).join('') };
}

async function spawnBackend(): Promise<{ readonly url: string } & AsyncDisposable> {
  const main = fileURLToPath(new URL('../../packages/testkit/src/fake-backend/process/main.ts', import.meta.url));
  const args = ['--policy', 'fixed', '--turns', '1000000', '--tokens-per-turn', `${tokensPerTurn}`];
  const child = spawn(process.execPath, [main, ...args], { stdio: ['ignore', 'pipe', 'inherit', 'ipc'] });
  const exited = once(child, 'exit');
  if (!child.stdout) throw new Error('the fake backend has no standard output');
  const [line] = await Promise.race([once(createInterface(child.stdout), 'line'), exited]);
  const { url } = JSON.parse(line);
  return {
    url,
    async [Symbol.asyncDispose]() {
      child.disconnect();
      await exited;
    },
  };
}

function judge(rows: readonly BenchRow[]): { claim: string; kept: boolean }[] {
  const cpu = (size: number) =>
    percentile(rows.find(({ what, unit }) => unit === 'ms CPU' && what === `${size}k context, Millrace`)?.samples ?? [], 0.5);
  return [
    { claim: `less than 2 ms of CPU for a turn at 16k tokens of context (${cpu(16).toFixed(2)} ms)`, kept: cpu(16) < 2 },
    { claim: `64 times the context, less than 2 times the cost (${(cpu(64) / cpu(1)).toFixed(2)} times)`, kept: cpu(64) < 2 * cpu(1) },
  ];
}

function describeTurn(): string {
  return `A turn samples ${tokensPerTurn} tokens, streamed so that it can be cut, and observes about ${observationTokens}. The fake backend is another process with no latency; wall time includes its reading of the whole prompt.`;
}
