// The crash test: rollouts run in real sandboxes while the server and its workers are killed with SIGKILL again and again.
// Afterwards the books are checked: every rollout ended once, with the tokens that the backend sent, and nothing is left behind.

import { readdir } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import type { Event, SubmissionInput, Trajectory } from '@millrace/protocol';
import { openFakeBackend } from './fake-backend.ts';
import { fakeLogprob } from './fake-logprob.ts';
import { scriptedPolicy } from './policy.ts';
import { qwen3Folder } from './qwen3.ts';
import { processesInSandboxesOf, TestService } from './service.ts';

export interface ChaosOptions {
  readonly kills: number;
  readonly rollouts: number;
  onProgress?(line: string): void;
}

export interface ChaosReport {
  readonly kills: { server: number; worker: number };
  readonly done: number;
  /** Not done at the end, with what became of them. */
  readonly lost: readonly string[];
  /** Ended more than once in the event log. */
  readonly doubled: readonly string[];
  /** Trajectories in which a token is not what the backend sent. */
  readonly wrong: readonly string[];
  readonly attempts: number;
  readonly sampledTokens: number;
  readonly leftSandboxes: number;
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

export async function runChaos({ kills, rollouts, onProgress = () => {} }: ChaosOptions): Promise<ChaosReport> {
  await using backend = await openFakeBackend({ policy, latencyMs: 20 });
  const pipeline = { leaseMs: 3000, maxLosses: 1_000_000, initSlots: 4, readySlots: 8, runSlots: 16, handBackMs: 2000 };
  const service = await TestService.open({ workers: 2, tokenizer: qwen3Folder(), pipeline });
  const { client, runDir } = service;
  let stopped = false;
  try {
    await client.backends.join({ url: backend.url });
    const { last_event_id: after } = await client.status();
    const submissions = Array.from({ length: rollouts }, (_, index) => makeSubmission(index));
    await client.submit(submissions);
    const killed = await killInALoop(service, kills, onProgress);
    const ids = submissions.flatMap(({ id }) => (id === undefined ? [] : [id]));
    const views = await Array.fromAsync(client.results(ids));
    onProgress(`${views.length} rollouts have ended; checking the books`);
    const events = await readEnds(service, after);
    const trajectories = await Array.fromAsync(ids, (id) => client.trajectory(id));
    await service.stop();
    stopped = true;
    return {
      kills: killed,
      done: views.filter((view) => view.state === 'done' && view.reward === 1).length,
      lost: views
        .filter((view) => view.state !== 'done' || view.reward !== 1)
        .map((view) => `${view.id}: ${view.state} ${JSON.stringify(view.failure)}`),
      doubled: ids.filter((id) => events.filter((event) => event.rollout_id === id).length !== 1),
      wrong: trajectories.flatMap(findWrongToken),
      attempts: views.reduce((total, view) => total + view.attempt, 0),
      sampledTokens: views.reduce((total, view) => total + (view.result?.tokens.sampled ?? 0), 0),
      leftSandboxes: (await readdir(runDir)).filter((name) => name.startsWith('sb-')).length,
      leftProcesses: (await processesInSandboxesOf(runDir)).length,
    };
  } finally {
    if (!stopped) onProgress(await service.log());
    await service[Symbol.asyncDispose]();
  }
}

/** Kills one process after another, each time after some rollouts have ended; a killed server is started again. */
async function killInALoop(
  service: TestService,
  kills: number,
  onProgress: (line: string) => void,
): Promise<{ server: number; worker: number }> {
  const killed = { server: 0, worker: 0 };
  for (let round = 0; round < kills; round += 1) {
    const { rollouts, victim } = await waitForProgress(service, round);
    await pause(Math.random() * 200); // so that the kill hits at any moment of a rollout
    if (round % 4 === 3) {
      await service.kill();
      await service.start();
      killed.server += 1;
    } else {
      tryKill(victim);
      killed.worker += 1;
    }
    onProgress(
      `kill ${round + 1} of ${kills}: ${rollouts.done} done, ${rollouts.init + rollouts.run + rollouts.evaluate} under way, ${rollouts.queued} queued`,
    );
  }
  return killed;
}

/** Until a worker lives that has rollouts under way; kills that hit nothing prove nothing. */
async function waitForProgress(service: TestService, round: number) {
  for (;;) {
    const { workers, rollouts } = await service.client.status();
    const busy = workers.filter(
      ({ alive, report }) => alive && report !== null && report.stages.run.active + report.stages.init.active > 0,
    );
    const victim = busy[round % Math.max(1, busy.length)];
    if (victim) return { rollouts, victim: victim.pid };
    if (rollouts.queued + rollouts.init + rollouts.ready + rollouts.run + rollouts.evaluate === 0)
      throw new Error('all rollouts ended before the kills did');
    await pause(100);
  }
}

function tryKill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {} // It was killed in an earlier round and is not yet known to be dead.
}

async function readEnds(service: TestService, after: number): Promise<Event[]> {
  const { last_event_id: last } = await service.client.status();
  const ends: Event[] = [];
  for await (const event of service.client.events({ after })) {
    if (event.kind === 'rollout-end') ends.push(event);
    if (event.id >= last) break;
  }
  return ends;
}

/** Every sampled token's logprob is a function of its place and id, so a single wrong, missing or doubled token shows. */
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
