// The fault test: rollouts run on backends of all dialects that die, hang, reply with garbage, reply late and return, while the weights
// change twice. Afterwards every sampled token is compared with what the policy says there under the weights its segment names.

import { fileURLToPath } from 'node:url';
import type { Client } from '@millrace/client';
import type { Dialect, PauseMode, RolloutView, Segment, Trajectory } from '@millrace/protocol';
import { fakeLogprob } from '../fake-backend/engines/logprob.ts';
import { type FakeBackendProcess, openFakeBackendProcess } from '../fake-backend/process/process.ts';
import { type FakeTokens, openFakeTokens } from '../fake-backend/tokens.ts';
import { qwen3Folder } from '../models/qwen3.ts';
import { playTurn, playTurns } from './fault-play.ts';
import { TestService } from './service.ts';

const play = fileURLToPath(new URL('./fault-play.ts', import.meta.url));
const dialects = ['vllm', 'sglang', 'llamacpp'] as const satisfies readonly Dialect[];
type Name = (typeof dialects)[number];

export interface FaultReport {
  readonly done: number;
  /** Neither done nor failed by a backend. */
  readonly wronglyEnded: readonly string[];
  /** A token, logprob, version or order that differs from what the backends sent. */
  readonly wrong: readonly string[];
  /** Swaps that found a running generation on a live backend. */
  readonly disturbed: readonly string[];
  readonly sampledTokens: number;
  /** Sampled segments by the version they name, and those that were cut, retried, or started again as a rollout. */
  readonly segments: Readonly<Record<number, number>>;
  readonly cutSegments: number;
  readonly retriedSegments: number;
  readonly retriedRollouts: number;
}

interface FaultOptions {
  readonly rollouts: number;
  onProgress?(line: string): void;
}

export async function runFaults({ rollouts, onProgress: report = () => {} }: FaultOptions): Promise<FaultReport> {
  const startedAt = performance.now();
  const onProgress = (line: string) => report(`${((performance.now() - startedAt) / 1000).toFixed(1)} s: ${line}`);
  await using cast = await Cast.open();
  const pipeline = { initSlots: 16, readySlots: 32, runSlots: 32, retryDelayMs: 50, handBackMs: 2000 };
  const settings = { workers: 2, tokenizer: qwen3Folder(), scenarios: [play], pipeline, inference: { stallMs: 1500, tokenMs: 0 } };
  await using service = await TestService.open(settings);
  const { client } = service;
  for (const name of dialects) await client.backends.join({ id: name, url: cast.urlOf(name), dialect: name });
  const script = makeScript(cast, service, onProgress);
  onProgress('all is up');
  try {
    const views = await runScript(script, client, rollouts);
    onProgress('all have ended');
    const trajectories = await Array.fromAsync(views, ({ id }) => client.trajectory(id));
    return { ...toReport(views, trajectories, await openFakeTokens()), disturbed: cast.disturbed };
  } catch (error) {
    onProgress(await service.log());
    throw error;
  }
}

/** Some rollouts start before each act, and the act happens when the first of them have ended, so that it always hits live ones. */
async function runScript(script: readonly (() => Promise<void>)[], client: Client, rollouts: number): Promise<RolloutView[]> {
  const size = Math.ceil(rollouts / (script.length + 1));
  const numbers = Array.from({ length: rollouts }, (_, number) => number);
  const views: RolloutView[] = [];
  const begin = async (portion: readonly number[], onSome: () => void) => {
    const limits = { max_retries: 12 };
    const submissions = portion.map((number) => ({ id: `play-${number}`, scenario: 'play', task: { number }, limits }));
    let ended = 0;
    for await (const view of await client.run(submissions)) {
      views.push(view);
      if (++ended * 3 >= portion.length) onSome();
    }
  };
  const runs: Promise<void>[] = [];
  for (const [i, act] of script.entries()) {
    const some = Promise.withResolvers<void>();
    const run = begin(numbers.slice(i * size, (i + 1) * size), some.resolve);
    runs.push(run);
    await Promise.race([some.promise, run]);
    await act();
  }
  await Promise.all([...runs, begin(numbers.slice(script.length * size), () => {})]);
  return views;
}

/** The acts, in order. */
function makeScript(cast: Cast, { client }: TestService, onProgress: (line: string) => void) {
  const swap = async (mode: PauseMode, version: number) => {
    const { state, generating } = await client.policy.pause({ mode });
    if (state !== 'paused' || generating !== 0) throw new Error(`a pause ended as ${state} with ${generating} calls running`);
    await cast.setWeights(version);
    await client.policy.resume({ policy_version: version });
  };
  const acts: readonly [string, () => Promise<unknown>][] = [
    ['vllm answers garbage, sglang hangs', () => Promise.all([cast.fault('vllm', 'garbage'), cast.fault('sglang', 'hang')])],
    ['sglang is well, llamacpp is killed', async () => [await cast.heal('sglang'), await cast.kill('llamacpp')]],
    [
      'vllm is well, llamacpp comes back and is late',
      () => Promise.all([cast.heal('vllm'), cast.revive('llamacpp').then(() => cast.late('llamacpp'))]),
    ],
    ['sglang hangs', () => cast.fault('sglang', 'hang')],
    ['new weights, waiting for what is under way', () => swap('wait', 1)],
    ['sglang and llamacpp are well', () => Promise.all([cast.heal('sglang'), cast.heal('llamacpp')])],
    ['new weights, cutting what is under way', () => swap('abort', 2)],
    ['sglang is killed, vllm breaks connections', async () => [await cast.kill('sglang'), await cast.fault('vllm', 'reset')]],
    ['both are back', () => Promise.all([cast.revive('sglang'), cast.heal('vllm')])],
  ];
  return acts.map(([what, act]) => async () => {
    onProgress(what);
    await act();
  });
}

/** The backends, each its own process on a fixed port. */
class Cast implements AsyncDisposable {
  readonly disturbed: string[] = [];
  readonly #living: Map<Name, FakeBackendProcess>;
  readonly #urls: ReadonlyMap<Name, string>;
  #weights = 0;

  private constructor(living: Map<Name, FakeBackendProcess>) {
    this.#living = living;
    this.#urls = new Map([...living].map(([name, { url }]) => [name, url]));
  }

  static async open(): Promise<Cast> {
    return new Cast(new Map(await Promise.all(dialects.map(async (name) => [name, await open({})] as const))));
  }

  urlOf(name: Name): string {
    return this.#urls.get(name) ?? '';
  }

  async fault(name: Name, fault: 'garbage' | 'hang' | 'reset'): Promise<void> {
    await this.#living.get(name)?.send({ fault });
  }

  async late(name: Name): Promise<void> {
    await this.#living.get(name)?.send({ fault: { lateMs: 400 } });
  }

  async heal(name: Name): Promise<void> {
    await this.#living.get(name)?.send({ fault: null });
  }

  async kill(name: Name): Promise<void> {
    await this.#living.get(name)?.[Symbol.asyncDispose]();
    this.#living.delete(name);
  }

  async revive(name: Name): Promise<void> {
    this.#living.set(name, await open({ port: Number(new URL(this.urlOf(name)).port), weights: this.#weights }));
  }

  async setWeights(weights: number): Promise<void> {
    this.#weights = weights;
    for (const [name, backend] of this.#living) {
      const { inFlight } = await backend.send({ weights });
      if (inFlight > 0) this.disturbed.push(`${inFlight} on ${name} at the swap to ${weights}`);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#living.values().map((backend) => backend[Symbol.asyncDispose]()));
  }
}

function open(more: { port?: number; weights?: number }): Promise<FakeBackendProcess> {
  return openFakeBackendProcess({ policy: play, latencyMs: 20, tokenMs: 8, ...more });
}

function toReport(views: readonly RolloutView[], trajectories: readonly Trajectory[], tokens: FakeTokens): Omit<FaultReport, 'disturbed'> {
  const sampled = trajectories.flatMap(({ segments }) => segments.filter(({ kind }) => kind === 'sampled'));
  const isDone = ({ state, reward }: RolloutView) => state === 'done' && reward === 1;
  const isBlamed = ({ state, failure }: RolloutView) => state === 'failed' && failure?.blame === 'backend' && failure.retryable;
  const byVersion = Map.groupBy(sampled, ({ policy_versions }) => policy_versions?.last ?? -1);
  return {
    done: views.filter(isDone).length,
    wronglyEnded: views
      .filter((view) => !isDone(view) && !isBlamed(view))
      .map(({ id, state, failure }) => `${id}: ${state} ${JSON.stringify(failure)}`),
    wrong: trajectories.flatMap((trajectory) => findWrong(trajectory, tokens)),
    sampledTokens: sampled.reduce((total, { tokenIds }) => total + tokenIds.length, 0),
    segments: Object.fromEntries([...byVersion].map(([version, segments]) => [version, segments.length])),
    cutSegments: sampled.filter(({ finish_reason }) => finish_reason === 'abort').length,
    retriedSegments: sampled.filter(({ retries = 0 }) => retries > 0).length,
    retriedRollouts: views.filter(({ retries }) => retries > 0).length,
  };
}

/** The first error in a trajectory. */
function findWrong({ rolloutId, segments }: Trajectory, tokens: FakeTokens): string[] {
  const number = Number(rolloutId.replace('play-', ''));
  let position = 0;
  let newest = 0;
  for (const segment of segments) {
    if (segment.kind === 'sampled') {
      const wrong = findWrongLogprob(segment, position) ?? (newest > (segment.policy_versions?.first ?? -1) ? 'older weights' : undefined);
      if (wrong) return [`${rolloutId}: ${wrong} in turn ${segment.turn}`];
      newest = segment.policy_versions?.last ?? newest;
    }
    position += segment.tokenIds.length;
  }
  for (let turn = 0; turn < playTurns; turn++) {
    const said = segments.filter((segment) => segment.kind === 'sampled' && segment.turn === turn + 1);
    const ids = said.flatMap(({ tokenIds }) => [...tokenIds]);
    const expected = [...tokens.encode(playTurn(number, turn)), tokens.endOfTurnId];
    const isCut = said.at(-1)?.finish_reason === 'abort' || said.length === 0; // a failed rollout's last turn
    if (ids.some((id, i) => id !== expected[i]) || (!isCut && ids.length !== expected.length))
      return [`${rolloutId}: the ids of turn ${turn + 1}`];
  }
  return [];
}

/** Weights are part of every logprob: one that matches the version its segment names was sampled under it. */
function findWrongLogprob({ tokenIds, logprobs, policy_versions: versions }: Segment, position: number): string | undefined {
  if (!versions || versions.first !== versions.last) return `versions ${JSON.stringify(versions)}`;
  const bad = tokenIds.findIndex((id, at) => logprobs[at] !== fakeLogprob(position + at, id, versions.last));
  return bad < 0 ? undefined : `the logprob of token ${position + bad}`;
}
