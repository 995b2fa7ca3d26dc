// A real run: processes, HTTP, and a backend with long-tailed latency whose replies make half of the prompts uniform. It compares
// the service's batches with a client that samples, filters and repeats, on the same prompts.

import type { RolloutView } from '@millrace/protocol';
import { openFakeBackend, qwen3Folder, TestService } from '@millrace/testkit';
import { oracle } from './batch-baselines.ts';
import { groupSize, taskOf, type World } from './batch-worlds.ts';

const target = 12;
const slots = 96;
/** How many milliseconds of real time one simulated second takes. */
const msPerSecond = 20;
const seeds = [101, 102, 103];

interface RealRun {
  readonly batchSeconds: readonly number[];
  readonly repeatSeconds: readonly number[];
  /** Model time that the batch used, relative to the oracle's. */
  readonly sampled: readonly number[];
  /** Undelivered model time, relative to the oracle's. */
  readonly wasted: readonly number[];
}

export async function runRealBatches(): Promise<RealRun> {
  const run = { batchSeconds: [] as number[], repeatSeconds: [] as number[], sampled: [] as number[], wasted: [] as number[] };
  for (const seed of seeds) {
    const world: World = { name: 'real', slots, seed, tail: 'lognormal' };
    const source = new ScriptedReplies(world);
    await using backend = await openFakeBackend({
      policy: (input) => ({ text: source.next(Number(/task (\d+)/.exec(input.opening())?.[1] ?? 0)) }),
      latencyMs: () => source.latencyMs(),
      keep: 0,
    });
    await using service = await TestService.open({
      workers: 1,
      tokenizer: qwen3Folder(),
      pipeline: { runSlots: slots, initSlots: 32, readySlots: 64 },
    });
    await service.client.backends.join({ url: backend.url });
    await repeatUntil(service, 1, 'warm');
    source.reset();
    const repeated = await repeatUntil(service, target, `repeat-${seed}`);
    run.repeatSeconds.push(repeated.seconds);
    source.reset();
    const { seconds, sampledMs, wastedMs } = await fillBatch(service, `batch-${seed}`);
    run.batchSeconds.push(seconds);
    // The real duration of a simulated second, service overhead included, comes from the run that sampled its tasks completely.
    const perSecond = repeated.sampledMs / sampledSeconds(world, repeated.tasks);
    const best = oracle(world, target, 0);
    run.sampled.push(sampledMs / (best.rolloutSeconds * perSecond));
    run.wasted.push(wastedMs / (best.wastedSeconds * perSecond));
  }
  return run;
}

/** A backend does not know which sibling a request belongs to, so each request for a task counts as its next sibling. */
class ScriptedReplies {
  readonly #world: World;
  readonly #requests = new Map<number, number>();
  #latencyMs = 0;

  constructor(world: World) {
    this.#world = world;
  }

  reset(): void {
    this.#requests.clear();
  }

  next(index: number): string {
    const n = this.#requests.get(index) ?? 0;
    this.#requests.set(index, n + 1);
    const course = taskOf(this.#world, index).siblings[n % groupSize];
    this.#latencyMs = (course?.seconds ?? 1) * msPerSecond;
    return `\\boxed{${course?.reward === 1 ? 2 : 3}}`;
  }

  /** The latency of the latest reply. */
  latencyMs(): number {
    return this.#latencyMs;
  }
}

const makeTask = (index: number) => ({ question: `task ${index}`, answer: '2' });

async function fillBatch(service: TestService, id: string): Promise<{ seconds: number; sampledMs: number; wastedMs: number }> {
  const { batches } = service.client;
  const startedAt = performance.now();
  await batches.create({
    id,
    scenario: 'math',
    group_size: groupSize,
    target,
    tasks: Array.from({ length: 20 * target }, (_, index) => makeTask(index)),
  });
  const view = await batches.wait(id);
  const seconds = (performance.now() - startedAt) / 1000;
  if (view.state !== 'met') throw new Error(`the benchmark's batch ended as ${view.state}`);
  const wastedMs = 1000 * Object.values(view.wasted).reduce((total, one) => total + one.seconds, 0);
  let deliveredMs = 0;
  for await (const { group } of batches.groups(id))
    for (const rollout of group.rollouts) deliveredMs += rollout.result?.timings.run_ms ?? 0;
  return { seconds, sampledMs: deliveredMs + wastedMs, wastedMs };
}

interface Repeated {
  readonly seconds: number;
  readonly sampledMs: number;
  readonly tasks: number;
}

async function repeatUntil(service: TestService, wanted: number, name: string): Promise<Repeated> {
  const startedAt = performance.now();
  let [found, tasks, sampledMs] = [0, 0, 0];
  while (found < wanted) {
    const views = await sampleTasks(service, name, { from: tasks, count: wanted });
    const groups = [...Map.groupBy(views, ({ group }) => group).values()];
    found += groups.filter((group) => new Set(group.map(({ reward }) => reward)).size > 1).length;
    sampledMs += views.reduce((total, { result }) => total + (result?.timings.run_ms ?? 0), 0);
    tasks += wanted;
  }
  return { seconds: (performance.now() - startedAt) / 1000, sampledMs, tasks };
}

async function sampleTasks(
  service: TestService,
  name: string,
  stretch: { readonly from: number; readonly count: number },
): Promise<RolloutView[]> {
  const indexes = Array.from({ length: stretch.count }, (_, index) => stretch.from + index);
  const submissions = indexes.flatMap((index) =>
    Array.from({ length: groupSize }, (_, n) => ({
      id: `${name}-${index}-${n}`,
      group: `${name}-${index}`,
      scenario: 'math',
      task: makeTask(index),
    })),
  );
  return await Array.fromAsync(await service.client.run(submissions));
}

function sampledSeconds(world: World, tasks: number): number {
  const all = Array.from({ length: tasks }, (_, index) => taskOf(world, index).siblings).flat();
  return all.reduce((total, { seconds }) => total + seconds, 0);
}
