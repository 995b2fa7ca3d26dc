// The crash test: rollouts run in real sandboxes while the server and its workers are killed with SIGKILL again and again. Afterwards
// every rollout must have ended exactly once, with the tokens that the backend sent, and nothing may be left behind.

import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import type { Event, RolloutView, SubmissionInput, Trajectory } from '@millrace/protocol';
import { fakeLogprob } from '../fake-backend/engines/logprob.ts';
import { openFakeBackend } from '../fake-backend/fake-backend.ts';
import { scriptedPolicy } from '../fake-backend/policy.ts';
import { qwen3Folder } from '../models/qwen3.ts';
import { processesInSandboxesOf, TestService } from './service.ts';

export interface ChaosOptions {
  readonly kills: number;
  readonly rollouts: number;
  onProgress?(line: string): void;
}

export interface ChaosReport {
  readonly kills: { server: number; worker: number };
  readonly done: number;
  /** Not done at the end, with state and failure. */
  readonly lost: readonly string[];
  /** Ended more than once in the event log. */
  readonly doubled: readonly string[];
  /** Trajectories in which a token is not what the backend sent. */
  readonly wrong: readonly string[];
  readonly attempts: number;
  readonly sampledTokens: number;
  readonly leftSandboxes: number;
  /** Processes inside sandboxes, and workers that outlived their service. */
  readonly leftProcesses: number;
}

const bash = (command: string) => `<tool_call>\n${JSON.stringify({ name: 'bash', arguments: { command } })}\n</tool_call>`;

const policy = scriptedPolicy([
  {
    match: /number (\d+)/,
    turns: [
      bash('sleep 300 & setsid sleep 300 & ls'),
      bash('cat secret > copy'),
      '<tool_call>\n{"name": "finish", "arguments": {}}\n</tool_call>',
    ],
  },
]);

function makeSubmission(index: number): SubmissionInput {
  const task = {
    instruction: `Copy the file secret to copy. This is number ${index}.`,
    setup: `echo ${index} > secret`,
    check: `grep -qx ${index} copy`,
  };
  return { id: `chaos-${index}`, scenario: 'shell', task };
}

export async function runChaos(options: ChaosOptions): Promise<ChaosReport> {
  const { rollouts, onProgress = () => {} } = options;
  await using backend = await openFakeBackend({ policy, latencyMs: 20 });
  const pipeline = { leaseMs: 3000, maxLosses: 1_000_000, initSlots: 4, readySlots: 8, runSlots: 16, handBackMs: 2000 };
  await using service = await TestService.open({ workers: 2, tokenizer: qwen3Folder(), pipeline });
  const { client } = service;
  try {
    await client.backends.join({ url: backend.url });
    const submissions = Array.from({ length: rollouts }, (_, index) => makeSubmission(index));
    const ids = (await client.submit(submissions)).map(({ id }) => id);
    const kills = await killInALoop(service, options);
    const views = await Array.fromAsync(client.results(ids));
    onProgress(`${views.length} rollouts have ended; checking the results`);
    return { kills, ...(await checkBooks(service, views)) };
  } catch (error) {
    onProgress(await service.log());
    throw error;
  }
}

/** Reads all results, stops the service, and looks for leftovers. */
async function checkBooks(service: TestService, views: readonly RolloutView[]): Promise<Omit<ChaosReport, 'kills'>> {
  const { client, runDir } = service;
  const isDone = ({ state, reward }: RolloutView) => state === 'done' && reward === 1;
  const ends = Map.groupBy(await readEnds(service), ({ rollout_id }) => rollout_id);
  const trajectories = await Array.fromAsync(views.filter(isDone), ({ id }) => client.trajectory(id));
  const workers = (await client.status()).workers.map(({ pid }) => pid);
  await service.stop();
  return {
    done: views.filter(isDone).length,
    lost: views.filter((view) => !isDone(view)).map(({ id, state, failure }) => `${id}: ${state} ${JSON.stringify(failure)}`),
    doubled: views.map(({ id }) => id).filter((id) => ends.get(id)?.length !== 1),
    wrong: trajectories.flatMap(findWrongToken),
    attempts: views.reduce((total, { attempt }) => total + attempt, 0),
    sampledTokens: views.reduce((total, { result }) => total + (result?.tokens.sampled ?? 0), 0),
    leftSandboxes: (await readdir(runDir)).filter((name) => name.startsWith('sb-')).length,
    leftProcesses: (await processesInSandboxesOf(runDir)).length + (await countWorkers(workers)),
  };
}

/** A pid may have been reused: only a process that runs a worker counts. */
async function countWorkers(pids: readonly number[]): Promise<number> {
  const lines = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => ''))); // gone, as it should be
  return lines.filter((line) => line.includes('worker-main')).length;
}

/** Kills one process after another, each while it has live rollouts; a killed server is started again. */
async function killInALoop(service: TestService, { kills, rollouts, onProgress = () => {} }: ChaosOptions): Promise<ChaosReport['kills']> {
  const killed = { server: 0, worker: 0 };
  const dead = new Set<number>();
  for (let round = 0; round < kills; round += 1) {
    const { counts, victim } = await waitForVictim(service, dead, rollouts);
    await pause(Math.random() * 300); // so that the kill can hit any moment of a rollout
    if (round % 4 === 3) {
      await service.kill();
      await service.start();
      killed.server += 1;
    } else {
      dead.add(victim);
      process.kill(victim, 'SIGKILL');
      killed.worker += 1;
    }
    const { done, queued, init, ready, run, evaluate } = counts;
    onProgress(`kill ${round + 1} of ${kills}: ${done} done, ${init + ready + run + evaluate} under way, ${queued} queued`);
  }
  return killed;
}

/** Waits for a live worker with live rollouts: a kill that hits nothing proves nothing. */
async function waitForVictim(service: TestService, dead: ReadonlySet<number>, all: number) {
  for (;;) {
    const { workers, rollouts: counts } = await service.client.status();
    const isBusy = ({ alive, report }: (typeof workers)[number]) => alive && report !== null && report.stages.run.active > 0;
    const [victim] = workers.filter((worker) => isBusy(worker) && !dead.has(worker.pid));
    if (victim && (await countWorkers([victim.pid])) === 1) return { counts, victim: victim.pid };
    if (counts.done + counts.failed >= all) throw new Error('all rollouts ended before the kills did');
    await pause(50);
  }
}

async function readEnds(service: TestService): Promise<Event[]> {
  const { last_event_id: last } = await service.client.status();
  const ends: Event[] = [];
  for await (const event of service.client.events({ after: 0 })) {
    if (event.kind === 'rollout-end') ends.push(event);
    if (event.id >= last) break;
  }
  return ends;
}

/** The logprob of every sampled token is a function of its position and id, so one wrong, missing or repeated token shows. */
export function findWrongToken(trajectory: Trajectory): string[] {
  let position = 0;
  for (const segment of trajectory.segments) {
    const bad =
      segment.kind === 'sampled' ? segment.tokenIds.findIndex((id, at) => segment.logprobs[at] !== fakeLogprob(position + at, id)) : -1;
    if (bad >= 0) return [`${trajectory.rolloutId}: token ${position + bad} of turn ${segment.turn}`];
    position += segment.tokenIds.length;
  }
  return [];
}
