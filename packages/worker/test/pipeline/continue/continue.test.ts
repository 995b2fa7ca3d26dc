// Rollouts that continue: the next attempt goes on after the last turn that was saved, with the same tokens, files and shell, and an attempt
// whose state cannot be saved begins again.

import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import type { RolloutId, Trajectory } from '@millrace/protocol';
import { probeBubblewrap } from '@millrace/sandbox';
import type { Policy } from '@millrace/testkit';
import { bash, finish, shell, WorkerBed } from '../worker-bed.ts';

const probe = await probeBubblewrap();
const skip = probe.ok ? false : `${probe.reason}; try: ${probe.remedy}`;

/** Each turn checks its file and its variable, and says `BAD` if one of them is not what the turns before it left. */
const step = (turn: number) =>
  bash(
    `((n += 1)); echo ${turn} >>steps; [[ $n == ${turn + 1} && $(wc -l <steps) == ${turn + 1} && $(tail -1 steps) == ${turn} ]] && echo ok-${turn} || echo BAD-$n`,
  );

interface Counted {
  readonly policy: Policy;
  /** How often each turn was sampled. */
  readonly sampled: number[];
  /** Resolves when this turn is sampled for the first time. */
  reached(turn: number): Promise<void>;
}

function count(turns: number, say: (turn: number) => string = step): Counted {
  const sampled: number[] = [];
  const waits = new Map<number, PromiseWithResolvers<void>>();
  const wait = (turn: number) => waits.get(turn) ?? waits.set(turn, Promise.withResolvers()).get(turn) ?? assert.fail();
  const policy: Policy = ({ turn }) => {
    sampled[turn] = (sampled[turn] ?? 0) + 1;
    wait(turn).resolve();
    return { text: turn < turns ? say(turn) : finish() };
  };
  return { policy, sampled, reached: (turn) => wait(turn).promise };
}

const observed = ({ segments }: Trajectory) => segments.filter(({ kind }) => kind === 'observation').map(({ text }) => text);

async function trajectoryOf(bed: WorkerBed, id: RolloutId): Promise<Trajectory> {
  const { state, failure } = await bed.ended(id);
  assert.equal(state, 'done', JSON.stringify(failure));
  return (await bed.store.trajectory(id)) ?? assert.fail('it has a trajectory');
}

describe('a rollout that continues', { skip, timeout: 240_000 }, () => {
  test('after a hand-back goes on in another worker with its tokens, files and shell', async () => {
    const turns = 12;
    const counted = count(turns);
    await using bed = await WorkerBed.open({ policy: counted.policy, latencyMs: 150 });
    const first = await bed.startWorker();
    const id = await bed.submit(shell('a', { check: `test $(wc -l <steps) = ${turns}` }));
    await counted.reached(6);
    first.handBackNow();
    await bed.reach(id, 'queued');
    await first[Symbol.asyncDispose]();
    const second = await bed.startWorker();
    const trajectory = await trajectoryOf(bed, id);
    await second[Symbol.asyncDispose]();
    const { result, attempt } = (await bed.store.get(id)) ?? assert.fail();
    assert.equal(attempt, 2);
    assert.equal(result?.reward, 1);
    assert.equal(result?.turns, turns + 1);
    assert.equal(result?.continued?.times, 1);
    assert.equal(observed(trajectory).filter((text) => /ok-\d+/.test(text)).length, turns);
    assert.ok(!observed(trajectory).some((text) => text.includes('BAD')));
    assert.ok(
      counted.sampled.every((times, turn) => times === 1 || (times === 2 && turn <= 7)),
      `${counted.sampled}`,
    );
    assert.deepEqual(await readdir(join(bed.runDir, 'checkpoints')), [], 'what it had is gone');
  });

  test('after the loss of its worker, again and again, has every turn once and pays for it once', async () => {
    const turns = 16;
    const counted = count(turns);
    await using bed = await WorkerBed.open({ policy: counted.policy, latencyMs: 150, pipeline: { maxLosses: 100 } });
    let worker = await bed.startWorker();
    const id = await bed.submit(shell('b', { check: `test $(wc -l <steps) = ${turns}` }));
    for (const turn of [5, 10, 14]) {
      await counted.reached(turn);
      const lost = worker;
      worker = await bed.startWorker();
      await bed.store.dropWorker(lost.id, { maxLosses: 100 });
      void lost[Symbol.asyncDispose]();
    }
    const trajectory = await trajectoryOf(bed, id);
    const { result, losses } = (await bed.store.get(id)) ?? assert.fail();
    assert.equal(losses, 3);
    assert.equal(result?.continued?.times, 3);
    assert.deepEqual(
      trajectory.segments.filter(({ kind }) => kind === 'sampled').map(({ turn }) => turn),
      Array.from({ length: turns + 1 }, (_, index) => index + 1),
    );
    assert.ok(!observed(trajectory).some((text) => text.includes('BAD')));
    const again = counted.sampled.reduce((sum, times) => sum + times - 1, 0);
    assert.ok(again <= (5 + 10 + 14) / 2, `${counted.sampled}: all turns before the losses are 29`);
    assert.ok((result?.timings.run_ms ?? 0) >= turns * 150, 'the clock goes on');
  });

  test('whose process state is not saved goes on from the turn before there was one', async () => {
    const turns = 8;
    const say = (turn: number) =>
      turn === 4 ? bash('sleep 1000 & disown; echo started') : step(turn).replaceAll(`== ${turn + 1}`, `-ge ${Math.min(turn, 4)}`);
    const counted = count(turns, say);
    await using bed = await WorkerBed.open({ policy: counted.policy, latencyMs: 150 });
    const first = await bed.startWorker();
    const id = await bed.submit(shell('c'));
    await counted.reached(7);
    first.handBackNow();
    await bed.reach(id, 'queued');
    await first[Symbol.asyncDispose]();
    await bed.startWorker();
    await trajectoryOf(bed, id);
    const { continued } = (await bed.store.get(id))?.result ?? {};
    const turn = continued?.turn ?? 0;
    assert.ok(turn >= 1 && turn <= 4, `after turn ${turn}`); // on a busy machine, the checkpoint of the fourth may not be done
    assert.ok((continued?.turns_again ?? 0) >= 2);
    assert.equal(counted.sampled[4], 2, 'the turn that started the process is sampled again');
    assert.ok(counted.sampled.slice(0, turn).every((times) => times === 1));
  });
});
