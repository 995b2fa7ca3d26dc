// Rollouts that continue: the next attempt goes on after the last turn that was saved, with the same tokens, files and shell, and an attempt
// whose state cannot be saved begins again.

import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import type { RolloutId, Trajectory } from '@millrace/protocol';
import { probeBubblewrap } from '@millrace/sandbox';
import type { Scenario } from '@millrace/scenarios';
import { type Policy, renderCall } from '@millrace/testkit';
import { z } from 'zod';
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
  test('goes on in another worker when its own leaves: with its tokens, files and shell, and no turn is sampled again', async () => {
    const [turns, many] = [10, 8];
    const counted = count(turns);
    await using bed = await WorkerBed.open({ policy: counted.policy, latencyMs: 200, pipeline: { handBackMs: 60_000 } });
    const first = await bed.startWorker();
    const check = `test $(wc -l <steps) = ${turns}`;
    const ids = await bed.submitAll(...Array.from({ length: many }, (_, index) => shell(`a-${index}`, { check })));
    await counted.reached(4);
    await Promise.all(ids.map((id) => bed.reach(id, 'run')));
    await first[Symbol.asyncDispose]();
    const left = await Promise.all(ids.map((id) => bed.store.get(id)));
    assert.deepEqual(new Set(left.map((record) => record?.state)), new Set(['queued']), 'it does not wait for their end');
    const second = await bed.startWorker();
    for (const id of ids) {
      const trajectory = await trajectoryOf(bed, id);
      const { result, attempt } = (await bed.store.get(id)) ?? assert.fail();
      assert.deepEqual([attempt, result?.reward, result?.turns, result?.continued?.times], [2, 1, turns + 1, 1]);
      assert.equal(observed(trajectory).filter((text) => /ok-\d+/.test(text)).length, turns);
      assert.ok(!observed(trajectory).some((text) => text.includes('BAD')));
    }
    await second[Symbol.asyncDispose]();
    assert.deepEqual(
      counted.sampled,
      Array.from({ length: turns + 1 }, () => many),
      'each turn once',
    );
    assert.deepEqual(await readdir(join(bed.runDir, 'checkpoints')), [], 'what they had is gone');
  });

  test('that is young is not saved; one with state of its own begins again', async () => {
    const stateful: Scenario = {
      name: 'stateful',
      task: z.strictObject({}),
      init: async () => ({ messages: [{ role: 'user', content: 'Go.' }], tools: ['think', 'finish'], state: { seen: 0 } }),
      evaluate: async () => ({ reward: 1 }),
    };
    for (const options of [{ restMs: 60_000 }, { scenarios: [stateful] }]) {
      const counted = count(6, (turn) => renderCall('think', { thought: `${turn}` }));
      await using bed = await WorkerBed.open({ policy: counted.policy, latencyMs: 50, ...options });
      const first = await bed.startWorker();
      const id = await bed.submit('scenarios' in options ? { id: 's', scenario: 'stateful', task: {} } : shell('y'));
      await counted.reached(3);
      first.handBackNow();
      await bed.reach(id, 'queued');
      await first[Symbol.asyncDispose]();
      const second = await bed.startWorker();
      await trajectoryOf(bed, id);
      await second[Symbol.asyncDispose]();
      assert.equal((await bed.store.get(id))?.result?.continued, undefined);
      assert.deepEqual(counted.sampled.slice(0, 3), [2, 2, 2]);
      assert.deepEqual(await readdir(join(bed.runDir, 'checkpoints')).catch(() => []), []);
    }
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
