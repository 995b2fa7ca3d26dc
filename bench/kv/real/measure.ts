// Measures admission by KV cache on a real engine: agents with long contexts through a Millrace service, with and without it. Needs a running
// vLLM whose weights may be dummies, and only Node's own modules, so that it runs on a node without network:
//   node measure.ts --millrace MILLRACE --engine URL[,URL] --model FOLDER --out FILE RUN…
// A run is `long-48`, `young-160` or `slow-48` (tools of 8 s), for so many agents; `long-48+hold` is with admission, and `long-48+hold@4` with four
// workers. Each run adds a line to FILE.

import { spawn } from 'node:child_process';
import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { type EngineReading, quantileOf, readEngines, readSessions, readTurns } from './readings.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    millrace: { type: 'string', default: 'millrace' },
    engine: { type: 'string', default: 'http://127.0.0.1:8300' },
    model: { type: 'string', default: 'model' },
    out: { type: 'string', default: 'kv.jsonl' },
    port: { type: 'string', default: '8410' },
    /** The token that ends a turn. */
    end: { type: 'string', default: '2' },
    /** Shorter contexts and windows, to try it out: 0.01 divides them by 100. */
    scale: { type: 'string', default: '1' },
    /** Seconds before the window and of the window, instead of those of the regime. */
    warm: { type: 'string' },
    window: { type: 'string' },
  },
});
const scale = Number(values.scale);
const engines = values.engine.split(',');

interface Regime {
  readonly startTokens: number;
  readonly observedTokens: number;
  readonly outputTokens: number;
  readonly turns: number;
  /** The first agents are somewhere in their session. */
  readonly isSpread: boolean;
  readonly toolMedianS: number;
  readonly warmS: number;
  readonly windowS: number;
}

const long: Regime = {
  ...{ startTokens: 8000, observedTokens: 1080, outputTokens: 120, turns: 20, isSpread: true },
  ...{ toolMedianS: 1.5, warmS: 45, windowS: 90 },
};
const regimes: Readonly<Record<string, Regime>> = {
  long,
  /** After the agents of the start, whose openings are as long as a session, have been computed once. */
  steady: { ...long, warmS: 160, windowS: 200 },
  slow: { ...long, toolMedianS: 8 },
  /** Sessions short enough that whole ones end without admission too. */
  brief: { ...long, startTokens: 20_000, turns: 8, isSpread: false, warmS: 60, windowS: 240 },
  young: { ...long, startTokens: 2000, observedTokens: 900, outputTokens: 100, turns: 30, isSpread: false, warmS: 0 },
};

for (const run of positionals) {
  const line = await measure(run);
  appendFileSync(values.out, `${JSON.stringify(line)}\n`);
  console.log(JSON.stringify(line));
}

async function measure(run: string) {
  const [, name = '', count, hold, workers = '1'] = /^([a-z]+)-(\d+)(\+hold)?(?:@(\d+))?$/.exec(run) ?? [];
  const regime = regimes[name];
  if (!regime) throw new Error(`there is no run ${run}`);
  const agents = Number(count);
  const folder = mkdtempSync(join(tmpdir(), 'kv-'));
  const log = join(folder, 'turns.jsonl');
  writeFileSync(log, '');
  for (const url of engines) await post(`${url}/reset_prefix_cache`);
  const service = await serve(folder, { agents, isHeld: hold !== undefined, workers: Number(workers) });
  try {
    const startedMs = Date.now();
    await submit(service.url, { agents, regime, log });
    await sleep(1000 * Number(values.warm ?? regime.warmS) * scale);
    const before = await readEngines(engines);
    await sleep(1000 * Number(values.window ?? regime.windowS) * scale);
    const after = await readEngines(engines);
    const { rollouts: failed } = (await get(`${service.url}/v1/rollouts?state=failed&limit=100`)) as {
      readonly rollouts: readonly unknown[];
    };
    return {
      run,
      ...describe(startedMs),
      ...(await describeEngines(after)),
      ...compare(before, after),
      ...readTurns(log, { fromMs: before.atMs, untilMs: after.atMs }),
      ...(await readSessions(service.url)),
      warmSeconds: Math.round((before.atMs - startedMs) / 1000),
      seconds: Math.round((after.atMs - before.atMs) / 1000),
      failed: failed.length,
    };
  } finally {
    await service.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** When, and with which words, without the folders of this machine. */
function describe(startedMs: number) {
  const words = process.argv.slice(2).map((word) => (word.startsWith('/') ? basename(word) : word));
  return { at: new Date(startedMs).toISOString(), command: `node measure.ts ${words.join(' ')}` };
}

async function describeEngines(reading: EngineReading) {
  const versions = await Promise.all(engines.map(async (url) => (await get(`${url}/version`)) as { readonly version?: string }));
  const info = 'vllm:cache_config_info';
  const sizes = reading
    .labels(info, 'num_gpu_blocks')
    .map((blocks, index) => Number(blocks) * Number(reading.labels(info, 'block_size')[index]));
  return { engines: engines.length, vllm: versions[0]?.version, cacheTokens: sizes, platform: process.platform, node: process.version };
}

function compare(before: EngineReading, after: EngineReading) {
  const grown = (metric: string) => after.sum(metric) - before.sum(metric);
  const rate = (metric: string) => Math.round((1000 * grown(metric)) / (after.atMs - before.atMs));
  const firstToken = (share: number) => quantileOf('vllm:time_to_first_token_seconds', { before, after, share });
  return {
    tokensPerS: rate('vllm:generation_tokens_total'),
    promptTokensPerS: rate('vllm:prompt_tokens_total'),
    hits: Math.round((1000 * grown('vllm:prefix_cache_hits_total')) / Math.max(1, grown('vllm:prefix_cache_queries_total'))) / 1000,
    preemptions: grown('vllm:num_preemptions_total'),
    /** After the call, by the histogram of the engine. */
    firstTokenS: { p50: firstToken(0.5), p99: firstToken(0.99) },
  };
}

interface ServiceOptions {
  readonly agents: number;
  readonly isHeld: boolean;
  readonly workers: number;
}

async function serve(folder: string, { agents, isHeld, workers }: ServiceOptions) {
  const config = join(folder, 'config.json');
  const { port } = values;
  writeFileSync(
    config,
    JSON.stringify({
      data: join(folder, 'data'),
      run: join(folder, 'run'),
      http: { port: Number(port) },
      model: { tokenizer: values.model },
      scenarios: [join(import.meta.dirname, 'agents.ts')],
      workers,
      pipeline: { runSlots: Math.ceil(agents / workers) },
      inference: { holdForCache: isHeld },
    }),
  );
  const child = spawn(values.millrace, ['serve', '--config', config], { stdio: ['ignore', 'inherit', 'inherit'], detached: true });
  const url = `http://127.0.0.1:${port}`;
  for (
    let tries = 0;
    !(await fetch(`${url}/healthz`).then(
      ({ ok }) => ok,
      () => false,
    ));
    tries += 1
  ) {
    if (tries > 300 || child.exitCode !== null) throw new Error('the service did not start');
    await sleep(200);
  }
  for (const engine of engines) await post(`${url}/v1/backends`, { url: engine, dialect: 'vllm-completions' });
  return {
    url,
    async stop() {
      const ended = new Promise((resolve) => child.once('exit', resolve));
      process.kill(-(child.pid ?? 0), 'SIGKILL'); // what runs is not wanted any more
      await ended;
    },
  };
}

async function submit(url: string, { agents, regime, log }: { readonly agents: number; readonly regime: Regime; readonly log: string }) {
  const { startTokens, observedTokens, outputTokens, turns, isSpread, toolMedianS } = regime;
  const rollouts = Array.from({ length: 3 * agents }, (_, seed) => {
    const past = isSpread && seed < agents ? Math.floor((turns * ((seed * 7919) % agents)) / agents) : 0;
    const task = {
      seed,
      start_tokens: Math.ceil((startTokens + past * (observedTokens + outputTokens)) * scale),
      observed_tokens: Math.ceil(observedTokens * scale),
      output_tokens: Math.max(4, Math.ceil(outputTokens * scale)),
      turns: turns - past,
      end_token: Number(values.end),
      tool: { median_s: toolMedianS * scale, sigma: 1, longest_s: 15 * toolMedianS * scale },
      log,
    };
    return { scenario: 'pressure', task, limits: { max_turns: turns + 1, tool_timeout_s: 600, run_timeout_s: 36_000 } };
  });
  await post(`${url}/v1/rollouts`, { rollouts });
}

async function get(url: string): Promise<unknown> {
  return await (await fetch(url)).json();
}

async function post(url: string, body: unknown = {}): Promise<void> {
  const reply = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
  if (!reply.ok) throw new Error(`POST ${url} answered ${reply.status}: ${(await reply.text()).slice(0, 500)}`);
}
