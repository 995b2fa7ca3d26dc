// The attack composer: for some seconds, it runs random combinations of attacks, one after the other and at the same time, each in a new small
// sandbox. Whatever they do together, their sandbox works afterwards or its end is blamed on the policy, and a neighbour keeps working.
// MILLRACE_ATTACK_SECONDS sets how long, MILLRACE_ATTACK_SEED repeats a run.

import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { test } from 'node:test';
import type { Sandbox } from '@millrace/sandbox';
import { makeRandom } from '../../../models/random.ts';
import { type Attack, type AttackTarget, timeoutMs } from './attack.ts';
import { act, assertAlive, attacks, isBlamedOnPolicy, smallLimits } from './run-attacks.ts';

const defaultSeconds = 3;
const longestAttacks = 5;
const attackMs = 1500;

export function defineComposedAttacks({ driver }: AttackTarget): void {
  test('random combinations of attacks harm no one but the agent', async (context) => {
    const seconds = Number(process.env.MILLRACE_ATTACK_SECONDS ?? defaultSeconds);
    const seed = Number(process.env.MILLRACE_ATTACK_SEED ?? randomInt(2 ** 31));
    context.diagnostic(`MILLRACE_ATTACK_SEED=${seed}`);
    const random = makeRandom(seed);
    await using neighbour = await driver().open({});
    const untilMs = performance.now() + seconds * 1000;
    for (let round = 1; performance.now() < untilMs; round += 1) {
      const steps = compose(random);
      const what = `MILLRACE_ATTACK_SEED=${seed}, round ${round}: ${JSON.stringify(steps.map(({ name, mode }) => ({ name, mode })))}`;
      await using sandbox = await driver().open({ limits: smallLimits });
      await runSteps(sandbox, steps).catch((error) => assert.fail(`${what}: ${error}`));
      const startMs = performance.now();
      assert.equal((await neighbour.runShell('echo well', { timeoutMs })).output, 'well\n', what);
      assert.ok(performance.now() - startMs < timeoutMs / 2, `the neighbour waited: ${what}`);
    }
  });
}

type ComposedAttack = Attack & { readonly mode: 'wait' | 'together' | 'cancel' };

/** Transfers expect a folder that others would have made, and an agent that breaks its own programs leaves nothing to assert. */
const composable = attacks.filter(({ family, holds }) => family !== 'transfer' && !holds.isSelfHarm);
const modes: readonly ComposedAttack['mode'][] = ['wait', 'wait', 'together', 'cancel'];

function compose(random: () => number): ComposedAttack[] {
  const count = 2 + Math.floor(random() * (longestAttacks - 1));
  return Array.from({ length: count }, () => ({ ...pick(composable, random), mode: pick(modes, random) }));
}

function pick<T>(list: readonly T[], random: () => number): T {
  return list[Math.floor(random() * list.length)] ?? assert.fail('there is nothing to choose from');
}

async function runSteps(sandbox: Sandbox, steps: readonly ComposedAttack[]): Promise<void> {
  const running: Promise<unknown>[] = [];
  try {
    for (const step of steps) {
      const attack = runStep(sandbox, step);
      attack.catch(() => {}); // awaited below
      running.push(attack);
      if (step.mode !== 'together') await attack;
    }
    await Promise.all(running);
    await assertAlive(sandbox);
  } catch (error) {
    await Promise.allSettled(running);
    if (!isBlamedOnPolicy(error)) throw error;
  }
}

async function runStep(sandbox: Sandbox, { agent, mode }: ComposedAttack): Promise<void> {
  if (mode !== 'cancel') {
    await act(sandbox, agent, attackMs);
    return;
  }
  const cancelled = new Error('cancelled by the composer');
  const cancel = new AbortController();
  const command = 'shell' in agent ? agent.shell : 'sleep 1';
  const running = sandbox.runShell(command, { timeoutMs: attackMs, signal: cancel.signal });
  setTimeout(() => cancel.abort(cancelled), 50);
  await running.catch((error) => {
    if (error !== cancelled) throw error;
  });
}
