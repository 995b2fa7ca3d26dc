// What the gateway adds to an engine that is called directly by the same client: the time to the first token, the tokens per second of many
// streams at once, CPU, and the memory of a session. Calls alternate between both, so that the machine disturbs them alike.

import { openFakeBackendProcess, qwen3Folder, TestService } from '@millrace/testkit';
import { readCpuMs, readPssMiB } from '../report/processes.ts';
import { type BenchReport, type BenchRow, percentile } from '../report/report.ts';
import { textTokens } from './text-policy.ts';
import { firstText, openSession, openTimedClient, readContent, type StreamedCall, type TimedReply, toDirect } from './timed-stream.ts';

/** As of a large model on a GPU: 20 ms to the first token, and 100 tokens per second for each request. */
const engine = { latencyMs: 20, tokenMs: 10 };
const calls = 60;
/** Of sessions that are given a single token for each request: what they cost is the cost of a request. */
const shortCalls = 300;
const streams = 32;
const rounds = 4;
const idleSessions = 200;
const contexts = [
  { name: '1k of context', words: 1000 },
  { name: '16k of context', words: 16_000 },
];

export async function runGatewayBench(): Promise<BenchReport> {
  const policy = new URL('./text-policy.ts', import.meta.url).pathname;
  await using backend = await openFakeBackendProcess({ policy, ...engine });
  const pipeline = { runSlots: 1000, readySlots: 1000, initSlots: 64 };
  await using service = await TestService.open({ workers: 1, tokenizer: qwen3Folder(), pipeline });
  await service.client.backends.join({ url: backend.url });
  const first = await measureFirst(service.url, backend.url);
  const requests = await measureRequests(service);
  const rates = await measureRates(service, backend);
  const memory = await measureMemory(service);
  return {
    title: 'The gateway against the same engine called directly',
    rows: [...first.rows, ...rates.rows, ...requests, ...memory],
    targets: [...first.targets, ...rates.targets],
    notes: [
      `The engine takes ${engine.latencyMs} ms to its first token and ${engine.tokenMs} ms for each one. The gateway's calls pass the server and a worker, as those of an agent elsewhere do. In each session a call follows the one before it; the direct call has as many prompt tokens. Overheads are differences of neighbours.`,
      'Throughput is the pace of the engine less what the gateway delays it: as many streams at once as are said, through one worker. CPU is that of server and worker together, of engine and client where the engine is called directly: a busy machine changes it less than times.',
    ],
  };
}

async function openTalk(serviceUrl: string, words: number, sampling: Readonly<Record<string, unknown>> = {}) {
  const { url, key } = await openSession(serviceUrl, sampling);
  const messages = [{ role: 'user', content: `Begin.${' word'.repeat(words)}` }];
  return {
    get call(): StreamedCall {
      return { url, key, body: { model: 'm', stream: true, messages }, first: firstText };
    },
    /** The reply goes back, as a harness sends it, with a new message. */
    next({ text }: TimedReply) {
      messages.push({ role: 'assistant', content: readContent(text) }, { role: 'user', content: `Go on ${messages.length}.` });
    },
  };
}

async function measureFirst(serviceUrl: string, engineUrl: string) {
  const call = openTimedClient(1);
  const rows: BenchRow[] = [];
  const targets: { claim: string; kept: boolean }[] = [];
  for (const { name, words } of contexts) {
    const [direct, through, added]: [number[], number[], number[]] = [[], [], []];
    const talk = await openTalk(serviceUrl, words);
    for (let at = 0; at < calls; at += 1) {
      const own = await call(toDirect(engineUrl, words + at * (textTokens + 12)));
      const reply = await call(talk.call);
      talk.next(reply);
      if (at < 5) continue; // warms up, and renders the opening
      direct.push(own.firstMs);
      through.push(reply.firstMs);
      added.push(reply.firstMs - own.firstMs);
    }
    const at = rows.length;
    rows.push({ what: `first token, ${name}, the engine itself`, unit: 'ms', samples: direct });
    rows.push({ what: `first token, ${name}, through the gateway`, unit: 'ms', samples: through, against: at });
    rows.push({ what: `first token, ${name}, what the gateway adds`, unit: 'ms', samples: added });
    const median = percentile(added, 0.5);
    targets.push({ claim: `${name}: the gateway adds < 3 ms to the first token (p50 ${median.toFixed(2)} ms)`, kept: median < 3 });
  }
  return { rows, targets };
}

/** The CPU of server and workers so far. */
async function openCpu(service: TestService): Promise<() => number> {
  const { workers } = await service.client.status();
  const pids = [service.pid, ...workers.filter(({ alive }) => alive).map(({ pid }) => pid)];
  return () => pids.reduce((sum, pid) => sum + readCpuMs(pid), 0);
}

async function measureRequests(service: TestService): Promise<BenchRow[]> {
  const call = openTimedClient(4);
  const readCpu = await openCpu(service);
  const rows: BenchRow[] = [];
  for (const { name, words } of contexts) {
    const talks = await Promise.all(Array.from({ length: 4 }, () => openTalk(service.url, words, { max_tokens: 1 })));
    const play = (times: number) =>
      Promise.all(
        talks.map(async (talk) => {
          for (let at = 0; at < times / talks.length; at += 1) talk.next(await call(talk.call));
        }),
      );
    await play(shortCalls / 3); // warms up, and renders the openings
    const before = readCpu();
    await play(shortCalls);
    rows.push({
      what: `CPU of the service for a request and its first token, ${name}`,
      unit: 'ms',
      samples: [(readCpu() - before) / shortCalls],
    });
  }
  return rows;
}

async function measureRates(service: TestService, engine: { readonly url: string; readonly pid: number }) {
  const call = openTimedClient(streams);
  const talks = await Promise.all(Array.from({ length: streams }, () => openTalk(service.url, 1000)));
  const readService = await openCpu(service);
  const readDirect = () => readCpuMs(engine.pid) + readCpuMs(process.pid);
  const [direct, through, cpu, directCpu]: [number[], number[], number[], number[]] = [[], [], [], []];
  for (let round = 0; round <= rounds; round += 1) {
    const directBefore = readDirect();
    const own = await rate(() => Promise.all(talks.map(() => call(toDirect(engine.url, 1000)))));
    const [directAfter, before] = [readDirect(), readService()];
    const passed = await rate(() => Promise.all(talks.map(async (talk) => talk.next(await call(talk.call)))));
    if (round === 0) continue; // renders the openings
    direct.push(own);
    through.push(passed);
    directCpu.push(((directAfter - directBefore) / (streams * textTokens)) * 1000);
    cpu.push(((readService() - before) / (streams * textTokens)) * 1000);
  }
  const lost = 1 - percentile(through, 0.5) / percentile(direct, 0.5);
  return {
    rows: [
      { what: `${streams} streams at once, the engine itself`, unit: 'tokens/s', samples: direct, larger: 'better' },
      { what: `${streams} streams at once, through the gateway`, unit: 'tokens/s', samples: through, larger: 'better', against: 2 * 3 },
      { what: 'CPU of engine and client for 1,000 streamed tokens, called directly', unit: 'ms', samples: directCpu },
      { what: 'CPU of the service for 1,000 streamed tokens', unit: 'ms', samples: cpu, against: 2 * 3 + 2 },
    ] as BenchRow[],
    targets: [{ claim: `the gateway costs < 5 % of throughput (${(lost * 100).toFixed(1)} %)`, kept: lost < 0.05 }],
  };
}

/** Tokens per second. */
async function rate(run: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await run();
  return (streams * textTokens * 1000) / (performance.now() - startedAt);
}

/** Each session has answered once; without and with a history. */
async function measureMemory(service: TestService): Promise<BenchRow[]> {
  const call = openTimedClient(16);
  const { workers } = await service.client.status();
  const pid = workers.find(({ alive }) => alive)?.pid ?? 0;
  const rows: BenchRow[] = [];
  for (const { name, words } of [{ name: '100 tokens', words: 100 }, ...contexts]) {
    const before = readPssMiB(pid);
    const count = words > 1000 ? idleSessions / 4 : idleSessions;
    for (let at = 0; at < count; at += 16)
      await Promise.all(Array.from({ length: Math.min(16, count - at) }, async () => call((await openTalk(service.url, words)).call)));
    rows.push({ what: `memory of a worker for each session, ${name}`, unit: 'MiB', samples: [(readPssMiB(pid) - before) / count] });
  }
  return rows;
}
