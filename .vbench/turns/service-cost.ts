// The CPU cost of the service itself, per turn and per rollout, with a backend without latency, compared with a bare loop that only
// builds requests, sends them and reads the replies.

import { fileURLToPath } from 'node:url';
import type { SubmissionInput } from '@millrace/protocol';
import { openFakeBackendProcess, qwen3Folder, TestService } from '@millrace/testkit';
import { readCpuMs } from '../report/processes.ts';
import type { BenchReport } from '../report/report.ts';

const turns = 20;
const rounds = 5;
const rolloutsPerRound = 40;
const scenarios = [fileURLToPath(new URL('./turns-scenario.ts', import.meta.url))];

function makeSubmissions(words: number, maxTurns: number): SubmissionInput[] {
  const limits = { max_turns: maxTurns, max_context_tokens: 100_000 };
  return Array.from({ length: rolloutsPerRound }, () => ({ scenario: 'turns', task: { words }, limits }));
}

/** CPU of server and workers for one round, in milliseconds per rollout. */
async function runRound(service: TestService, submissions: readonly SubmissionInput[]): Promise<number> {
  const { workers } = await service.client.status();
  const pids = [service.pid, ...workers.filter(({ alive }) => alive).map(({ pid }) => pid)];
  const cpu = () => pids.reduce((total, pid) => total + readCpuMs(pid), 0);
  const before = cpu();
  const run = await service.client.run(submissions);
  for await (const view of run)
    if (view.state !== 'done') throw new Error(`a rollout of the benchmark ended as ${JSON.stringify(view.failure)}`);
  return (cpu() - before) / submissions.length;
}

/** Milliseconds of CPU per turn of a minimal client: the whole context is serialized, sent and answered. */
async function runBareTurn(url: string, contextTokens: number): Promise<number> {
  const ids = Array.from({ length: contextTokens }, (_, index) => index % 50_000);
  const before = process.cpuUsage();
  const calls = 100;
  for (let call = 0; call < calls; call += 1) {
    const body = JSON.stringify({ token_ids: ids, sampling_params: { max_tokens: 64, temperature: 1, logprobs: 0 } });
    const reply = await fetch(`${url}/inference/v1/generate`, { method: 'POST', body, headers: { 'content-type': 'application/json' } });
    await reply.json();
  }
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000 / calls;
}

export async function runServiceCostBench(): Promise<BenchReport> {
  await using backend = await openFakeBackendProcess({ policy: 'fixed', turns, tokensPerTurn: 64 });
  await using service = await TestService.open({
    workers: 1,
    tokenizer: qwen3Folder(),
    scenarios,
    pipeline: { runSlots: 32, readySlots: 32, initSlots: 32 },
  });
  await service.client.backends.join({ url: backend.url });
  const shapes = [
    { name: 'short context', words: 0, context: 1000 },
    { name: '16k context', words: 16_000, context: 16_000 },
  ];
  await runRound(service, makeSubmissions(0, turns)); // warm
  const rows: BenchReport['rows'][number][] = [];
  const targets: { claim: string; kept: boolean }[] = [];
  for (const { name, words, context } of shapes) {
    const [perTurn, perRollout, bare]: [number[], number[], number[]] = [[], [], []];
    for (let round = 0; round < rounds; round += 1) {
      const long = await runRound(service, makeSubmissions(words, turns));
      const short = await runRound(service, makeSubmissions(words, 1));
      perTurn.push((long - short) / (turns - 1));
      perRollout.push(short);
      bare.push(await runBareTurn(backend.url, context));
    }
    const at = rows.length;
    rows.push({ what: `bare loop, one turn, ${name}`, unit: 'ms CPU', samples: bare });
    rows.push({ what: `service, one turn more, ${name}`, unit: 'ms CPU', samples: perTurn, against: at });
    rows.push({ what: `service, a rollout of one turn, ${name}`, unit: 'ms CPU', samples: perRollout });
    const median = perTurn.toSorted((a, b) => a - b)[Math.floor(perTurn.length / 2)] ?? Number.NaN;
    targets.push({ claim: `a turn with ${name} costs the service < 2 ms of CPU (${median.toFixed(2)} ms)`, kept: median < 2 });
  }
  return {
    title: 'Service cost with a backend of no latency',
    rows,
    targets,
    notes: [
      `Server and worker processes together, ${rounds} rounds of ${rolloutsPerRound} rollouts; a turn samples 64 tokens and adds one tool answer. The opening of a rollout is tokenised once, which is most of what a rollout with a long one costs.`,
    ],
  };
}
