// What it costs that rollouts can continue: the same long rollouts on a service that saves their turns and on one that does not, and the
// checkpoints of small and large sandboxes next to a bare tar of the same files.

import { readFileSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { SubmissionInput } from '@millrace/protocol';
import { fixedPolicy, openFakeBackend, type Policy, qwen3Folder, TestService } from '@millrace/testkit';
import { readSpentCpu } from '../report/processes.ts';
import { type BenchReport, type BenchRow, percentile } from '../report/report.ts';
import { measureCheckpoints } from './checkpoints.ts';

const turns = 40;
const tokensPerTurn = 128;
const latencyMs = 500;
const rolloutsPerRound = 8;
const rounds = 3;
/** Rollouts are not saved in their first seconds. */
const shortTurns = 3;
const targetShare = 0.03;
const scenarios = [fileURLToPath(new URL('../turns/turns-scenario.ts', import.meta.url))];

const kinds: Readonly<Record<string, Pick<SubmissionInput, 'scenario' | 'task'>>> = {
  'no sandbox': { scenario: 'turns', task: {} },
  'a sandbox': { scenario: 'shell', task: { instruction: 'Go.', setup: 'seq 1000 >data', check: 'true' } },
};

export async function runContinueBench(): Promise<BenchReport> {
  await using off = await openSubject(0);
  await using on = await openSubject(20);
  for (const subject of [off, on]) await runRound(subject, { ...makeKind('a sandbox'), limits: { max_turns: shortTurns } });
  const rows: BenchRow[] = [];
  const targets: { claim: string; kept: boolean }[] = [];
  for (const name of Object.keys(kinds)) {
    const [without, saved]: [TurnFigures[], TurnFigures[]] = [[], []];
    for (let round = 0; round < rounds; round += 1) {
      const [first, second] = await Promise.all([runRound(off, makeKind(name)), runRound(on, makeKind(name))]);
      without.push(first);
      saved.push(second);
    }
    rows.push(...toRows(name, { without, saved, base: rows.length }));
    const [p50, p99] = [0.5, 0.99].map((at) => percentile(turnsOf(saved), at) / percentile(turnsOf(without), at) - 1);
    const claim = `${name}: what is saved takes ${percent(p50)} of a turn at p50, ${percent(p99)} at p99; at most ${percent(targetShare)} at p50`;
    targets.push({ claim, kept: (p50 ?? Number.NaN) <= targetShare });
  }
  rows.push(...(await measureCheckpoints(rows.length)));
  return {
    title: 'What it costs that rollouts continue',
    rows,
    targets,
    notes: [
      `Rounds of ${rolloutsPerRound} rollouts of ${turns} turns with ${tokensPerTurn} sampled tokens, a model of ${latencyMs} ms and one worker, at the same time on two services, one of them with \`pipeline.checkpointsGib\` 0: what disturbs one disturbs both. CPU is that of the service, its worker and their sandboxes; bytes are what they wrote to disk. The first 5 s of a rollout are not saved.`,
    ],
  };
}

/** From one request of a rollout to its next one: a whole turn. */
class TurnClock {
  #last = new Map<string, number>();
  #turnsMs: number[] = [];

  note(session: string | undefined): void {
    if (session === undefined) return;
    const now = performance.now();
    const last = this.#last.get(session);
    if (last !== undefined) this.#turnsMs.push(now - last);
    this.#last.set(session, now);
  }

  take(): number[] {
    const taken = this.#turnsMs;
    this.#turnsMs = [];
    this.#last = new Map();
    return taken;
  }
}

interface BenchedService extends AsyncDisposable {
  readonly service: TestService;
  readonly clock: TurnClock;
}

async function openSubject(checkpointsGib: number): Promise<BenchedService> {
  const stack = new AsyncDisposableStack();
  const clock = new TurnClock();
  const fixed = fixedPolicy({ turns, tokensPerTurn });
  const policy: Policy = (input) => {
    clock.note(input.sessionId);
    return fixed(input);
  };
  const backend = stack.use(await openFakeBackend({ policy, latencyMs, keep: 0 }));
  const pipeline = { runSlots: rolloutsPerRound, readySlots: rolloutsPerRound, initSlots: 4, handBackMs: 0, checkpointsGib };
  const service = stack.use(await TestService.open({ workers: 1, tokenizer: qwen3Folder(), scenarios, pipeline }));
  await service.client.backends.join({ url: backend.url });
  return { service, clock, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

function makeKind(name: string): SubmissionInput {
  const kind = kinds[name];
  if (!kind) throw new Error(`no kind is named ${name}`);
  return { ...kind, limits: { max_turns: turns } };
}

interface TurnFigures {
  readonly turnsMs: readonly number[];
  /** Per turn. */
  readonly cpuMs: number;
  readonly kib: number;
}

async function runRound({ service, clock }: BenchedService, submission: SubmissionInput): Promise<TurnFigures> {
  const { workers } = await service.client.status();
  const pids = [service.pid, ...workers.filter(({ alive }) => alive).map(({ pid }) => pid)];
  const read = () => ({
    cpuMs: pids.map(readSpentCpu).reduce((sum, { ownMs, childrenMs }) => sum + ownMs + childrenMs, 0),
    bytes: pids.reduce((sum, pid) => sum + readWritten(pid), 0),
  });
  const before = read();
  const run = await service.client.run(Array.from({ length: rolloutsPerRound }, () => submission));
  for await (const view of run)
    if (view.state !== 'done') throw new Error(`a rollout of the benchmark ended as ${JSON.stringify(view.failure)}`);
  await setImmediate();
  const after = read();
  const count = rolloutsPerRound * (submission.limits?.max_turns ?? turns);
  return { turnsMs: clock.take(), cpuMs: (after.cpuMs - before.cpuMs) / count, kib: (after.bytes - before.bytes) / 1024 / count };
}

function readWritten(pid: number): number {
  return Number(/^write_bytes: (\d+)/m.exec(readFileSync(`/proc/${pid}/io`, 'utf8'))?.[1]);
}

function turnsOf(costs: readonly TurnFigures[]): number[] {
  return costs.flatMap(({ turnsMs }) => turnsMs);
}

interface Compared {
  readonly without: readonly TurnFigures[];
  readonly saved: readonly TurnFigures[];
  readonly base: number;
}

function toRows(name: string, { without, saved, base }: Compared): BenchRow[] {
  const row = (what: string, unit: string, read: (costs: readonly TurnFigures[]) => number[], at: number): BenchRow[] => [
    { what: `${name}, not saved: ${what}`, unit, samples: read(without) },
    { what: `${name}, saved: ${what}`, unit, samples: read(saved), against: base + at },
  ];
  return [
    ...row('a turn', 'ms', turnsOf, 0),
    ...row('CPU of a turn', 'ms CPU', (costs) => costs.map(({ cpuMs }) => cpuMs), 2),
    ...row('written to disk for a turn', 'KiB', (costs) => costs.map(({ kib }) => kib), 4),
  ];
}

function percent(share: number | undefined): string {
  return `${(100 * (share ?? Number.NaN)).toFixed(1)} %`;
}
