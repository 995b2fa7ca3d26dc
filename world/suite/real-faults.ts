// The fault test with a real vLLM: rollouts run on it and on two fakes while it is paused, stopped, killed and started again, and the fakes
// die, hang and lie. Afterwards the engine itself scores every token that it is said to have sampled.

import { setTimeout as pause } from 'node:timers/promises';
import type { Client } from '@millrace/client';
import type { Event, RolloutView, Segment, Trajectory } from '@millrace/protocol';
import { fakeLogprob, readPastEvents, TestService } from '@millrace/testkit';
import { modelFolder, modelName } from '../engines/world-cache.ts';
import { scoreWithVllm } from './ask.ts';
import { RealCast } from './real-cast.ts';
import { makeMath } from './real-service.ts';

interface RealFaultReport {
  readonly done: number;
  /** Neither done nor failed by a backend that could be retried. */
  readonly wronglyEnded: readonly string[];
  /** Rollouts with another number of ends than one. */
  readonly doubled: readonly string[];
  /** Tokens of the fakes that they did not send. */
  readonly wrong: readonly string[];
  readonly realTokens: number;
  readonly realTokensAfterRestart: number;
  readonly fakeTokens: number;
  /** The largest difference between a recorded logprob and the engine's own score of the same ids. */
  readonly largest: number;
  /** The largest difference between two scores by the engine of the same ids. */
  readonly noise: number;
  readonly retriedSegments: number;
  readonly cutSegments: number;
}

/** vLLM sends nothing before the end of so short a turn, so each token adds to the time that a call may be silent. */
const maxTokens = 32;
const tokenMs = 100;

interface RealFaultOptions {
  readonly rollouts: number;
  readonly seed: number;
  onProgress(line: string): void;
}

export async function runRealFaults({ rollouts, seed, onProgress }: RealFaultOptions): Promise<RealFaultReport> {
  await using cast = await RealCast.open(seed);
  const stallMs = await cast.measureStall();
  onProgress(`vLLM is up; a call may be silent for ${(stallMs / 1000).toFixed(1)} s`);
  const pipeline = { runSlots: 24, retryDelayMs: 100, handBackMs: 2000 };
  const sandbox = { warm: { sandboxes: 0 } };
  await using service = await TestService.open({
    workers: 1,
    tokenizer: modelFolder(),
    pipeline,
    sandbox,
    inference: { stallMs, tokenMs, breakAfter: 3 },
  });
  const { client } = service;
  for (const [id, url] of cast.urls) await client.backends.join({ id, url, dialect: 'vllm', model: modelName, logprobs_mode: 'processed' });
  try {
    const views = await play(makeActs(cast, client, stallMs), { client, rollouts, cast, onProgress });
    onProgress('all rollouts have ended');
    const trajectories = await Array.fromAsync(views, ({ id }) => client.trajectory(id));
    return { ...toReport(views, await readPastEvents(client, 'rollout-end')), ...(await checkTokens(cast, trajectories)) };
  } catch (error) {
    onProgress(await service.log());
    throw error;
  }
}

interface FaultPlay {
  readonly client: Client;
  readonly rollouts: number;
  readonly cast: RealCast;
  onProgress(line: string): void;
}

type Act = readonly [what: string, act: () => Promise<unknown>];

/** A portion of the rollouts starts before each act, and the act happens once the real engine samples some of them. */
async function play(acts: readonly Act[], { client, rollouts, cast, onProgress }: FaultPlay): Promise<RolloutView[]> {
  const size = Math.ceil(rollouts / (acts.length + 1));
  const portions = Array.from({ length: acts.length + 1 }, (_, i) => i);
  const runs: Promise<RolloutView[]>[] = [];
  const begin = async (portion: number) => {
    const prefix = portion === acts.length ? 'late' : `act-${portion}`;
    const submissions = Array.from({ length: size }, (_, i) =>
      makeMath(`${prefix}-${i}`, {
        a: portion + 1,
        b: i,
        limits: { max_retries: 20 },
        sampling: { max_tokens: maxTokens, seed: portion * 100 + i },
      }),
    );
    const run = Array.fromAsync(await client.run(submissions));
    runs.push(run);
    return { ended: run };
  };
  for (const [i, [what, act]] of acts.entries()) {
    const { ended } = await begin(i);
    await cast.waitForTokens(ended);
    onProgress(what);
    await act();
  }
  await begin(portions.length - 1);
  return (await Promise.all(runs)).flat();
}

function makeActs(cast: RealCast, client: Client, stallMs: number): readonly Act[] {
  return [
    ['vLLM is paused and keeps its calls, a fake hangs', () => cast.pauseReal('keep', () => cast.fault('hanging', 'hang'))],
    ['vLLM is paused and aborts its calls, the other fake lies', () => cast.pauseReal('abort', () => cast.lie('lying'))],
    [
      'the service pauses and cuts every call',
      async () => {
        await client.policy.pause({ mode: 'abort' });
        await client.policy.resume();
      },
    ],
    ['vLLM is stopped for longer than a call may be silent', () => cast.stopReal(stallMs + maxTokens * tokenMs + 3000)],
    [
      'vLLM is killed, a fake dies and the other works again',
      async () => {
        cast.fault('lying', undefined);
        await Promise.all([cast.killReal(), cast.kill('hanging')]);
      },
    ],
    [
      'vLLM and the fake are started again',
      async () => {
        await Promise.all([cast.restartReal(), cast.revive('hanging')]);
        await waitUntilHealthy(client, 'real');
        // On a busy machine the fakes are so much faster that what comes now would all go to them.
        for (const fake of ['hanging', 'lying']) await client.backends.drain(fake);
      },
    ],
  ];
}

/** A broken backend is probed until it works. */
async function waitUntilHealthy(client: Client, wanted: string): Promise<void> {
  const deadline = performance.now() + 180_000;
  for (;;) {
    const found = (await client.backends.list()).find(({ id }) => id === wanted);
    if (found?.health === 'ok') return;
    if (performance.now() > deadline) throw new Error(`${wanted} is not healthy 180 s after its restart: ${JSON.stringify(found)}`);
    await pause(250);
  }
}

function toReport(views: readonly RolloutView[], ends: readonly Event[]): Pick<RealFaultReport, 'done' | 'wronglyEnded' | 'doubled'> {
  const isDone = ({ state }: RolloutView) => state === 'done';
  const isBlamed = ({ state, failure }: RolloutView) => state === 'failed' && failure?.blame === 'backend' && failure.retryable;
  const endsOf = Map.groupBy(ends, ({ rollout_id }) => rollout_id);
  return {
    done: views.filter(isDone).length,
    wronglyEnded: views
      .filter((view) => !isDone(view) && !isBlamed(view))
      .map(({ id, state, failure }) => `${id}: ${state} ${JSON.stringify(failure)}`),
    doubled: views.map(({ id }) => id).filter((id) => endsOf.get(id)?.length !== 1),
  };
}

type TokenReport = Omit<RealFaultReport, 'done' | 'wronglyEnded' | 'doubled'>;

/** Every sampled token against the backend that its segment names: the engine's own score, or what the fake must have sent. */
async function checkTokens({ real }: RealCast, trajectories: readonly Trajectory[]): Promise<TokenReport> {
  const sums = { realTokens: 0, realTokensAfterRestart: 0, fakeTokens: 0, largest: 0, noise: 0, retriedSegments: 0, cutSegments: 0 };
  const wrong: string[] = [];
  for (const { rolloutId, segments } of trajectories) {
    const ids = segments.flatMap(({ tokenIds }) => [...tokenIds]);
    const isReal = segments.some(({ kind, backend }) => kind === 'sampled' && backend === 'real');
    const scores = isReal ? await scoreWithVllm(real, ids) : [];
    // A few are scored twice, to know what the engine's own noise is.
    const again = isReal && sums.realTokens < 200 ? await scoreWithVllm(real, ids) : scores;
    let at = 0;
    for (const segment of segments) {
      const begin = at;
      at += segment.tokenIds.length;
      if (segment.kind !== 'sampled') continue;
      const { length } = segment.tokenIds;
      sums.retriedSegments += (segment.retries ?? 0) > 0 ? 1 : 0;
      sums.cutSegments += segment.finish_reason === 'abort' ? 1 : 0;
      if (segment.backend === 'real') {
        sums.realTokens += length;
        sums.realTokensAfterRestart += rolloutId.startsWith('late') ? length : 0;
        sums.largest = largestOf(sums.largest, segment.logprobs, scores.slice(begin, at));
        sums.noise = largestOf(sums.noise, again.slice(begin, at), scores.slice(begin, at));
      } else {
        sums.fakeTokens += length;
        const bad = findWrong(segment, begin);
        if (bad >= 0) wrong.push(`${rolloutId}: token ${begin + bad} of ${segment.backend}`);
      }
    }
  }
  return { ...sums, wrong };
}

/** A missing score is as bad as a wrong one. */
function largestOf(known: number, some: ArrayLike<number>, others: readonly number[]): number {
  return Array.from(some).reduce((most, value, i) => Math.max(most, Math.abs(value - (others[i] ?? Number.POSITIVE_INFINITY))), known);
}

function findWrong({ tokenIds, logprobs }: Segment, begin: number): number {
  return tokenIds.findIndex((id, i) => logprobs[i] !== fakeLogprob(begin + i, id));
}
