// `npm run demo`: the real service with the fake backend on this machine. Sixty rollouts run in real sandboxes, one worker is
// killed on the way, and at the end every token is checked against what the backend sent. Exits with 1 when anything is amiss.

import { fileURLToPath } from 'node:url';
import type { RolloutView, Trajectory } from '@millrace/protocol';
import { findWrongToken, openFakeBackendProcess, processesInSandboxesOf, qwen3Folder, TestService } from '@millrace/testkit';
import { renderRollouts, renderTrajectory } from './summary.ts';
import { makeSubmissions } from './tasks.ts';

const say = (line: string) => console.log(line);
const startedAt = performance.now();

say('Starting a fake vLLM server (a scripted policy behind the real token API) …');
await using backend = await openFakeBackendProcess({ policy: fileURLToPath(new URL('./policy.ts', import.meta.url)), latencyMs: 150 });
say('Starting `millrace serve` with two worker processes …');
await using service = await TestService.open({ workers: 2, tokenizer: qwen3Folder(), pipeline: { initSlots: 4, runSlots: 12 } });
const { client } = service;
await client.backends.join({ id: 'fake-0', url: backend.url });
say(`  service  ${(await client.status()).workers.length} workers, store and sandboxes in ${service.folder}`);

const submissions = makeSubmissions();
say(`Submitting ${submissions.length} rollouts: ${submissions.length / 6} tasks, 6 siblings each …\n`);
const views: RolloutView[] = [];
let killed: number | undefined;
for await (const view of await client.run(submissions)) {
  views.push(view);
  drawProgress(views.length, submissions.length);
  if (views.length === 20) killed = await killWorker();
}
say('\n');

const trajectories = await Promise.all(views.map(({ id }) => client.trajectory(id)));
const wrong = trajectories.flatMap(findWrongToken);
await service.stop();
const left = await processesInSandboxesOf(service.runDir);
for (const line of renderRollouts(views)) say(line);
say('');
for (const line of renderTrajectory(chooseShown(trajectories))) say(line);
say('');

const tokens = views.reduce((total, view) => total + (view.result?.tokens.sampled ?? 0), 0);
const again = views.filter((view) => view.attempt > 1).length;
say(
  `Worker ${killed} was killed with SIGKILL on the way: ${again} rollouts began again on the other one, ${submissions.length - views.length} were lost.`,
);
say(
  `${tokens.toLocaleString('en')} sampled tokens checked against what the backend sent: ${wrong.length === 0 ? 'every id and logprob is exact' : wrong.join(', ')}.`,
);
say(`Sandboxes left behind: ${left.length}. All in ${((performance.now() - startedAt) / 1000).toFixed(1)} s.`);

const failed = views.filter((view) => view.state !== 'done');
for (const view of failed) say(`FAILED ${view.id}: ${view.failure?.blame} ${view.failure?.code}: ${view.failure?.message}`);
process.exitCode = failed.length + wrong.length + left.length + (submissions.length - views.length) === 0 ? 0 : 1;

async function killWorker(): Promise<number | undefined> {
  const { workers } = await client.status();
  const victim = workers.find(({ alive }) => alive);
  if (victim) process.kill(victim.pid, 'SIGKILL');
  return victim?.pid;
}

function chooseShown(all: readonly Trajectory[]): Trajectory | undefined {
  return all.find(({ rolloutId }) => rolloutId === 'demo-8-0');
}

function drawProgress(done: number, all: number): void {
  const width = 40;
  const filled = Math.round((done / all) * width);
  const bar = `  ${'█'.repeat(filled)}${'░'.repeat(width - filled)} ${done}/${all} rollouts`;
  if (process.stdout.isTTY) process.stdout.write(`\r${bar}`);
  else if (done % 20 === 0) say(bar);
}
