// Runs every attack against a driver. Attacks share a small sandbox where they cannot spoil the next one; after each, that sandbox, its
// executor and a neighbour still work, or its end is blamed on the policy.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { RolloutError } from '@millrace/protocol';
import type { Sandbox } from '@millrace/sandbox';
import { type Attack, type AttackTarget, timeoutMs } from './attack.ts';
import { escapeAttacks } from './escape.ts';
import { executorAttacks } from './executor.ts';
import { limitAttacks, starvationAttacks } from './limits.ts';
import { shellAttacks } from './shell.ts';
import { transferAttacks } from './transfer.ts';

export const smallLimits = { cpus: 1, memoryMiB: 384, processes: 64, diskMiB: 16, openFiles: 128 };

export const attacks: readonly Attack[] = [
  ...escapeAttacks,
  ...limitAttacks,
  ...starvationAttacks,
  ...executorAttacks,
  ...shellAttacks,
  ...transferAttacks,
];

/** Most of the time of an attack on the shell is waiting. */
const concurrency = 4;

export function defineAttacks({ driver }: AttackTarget): void {
  let neighbour: Sandbox;
  const shared: Sandbox[] = [];
  before(async () => {
    neighbour = await driver().open({});
  });
  after(async () => {
    for (const sandbox of [...shared, neighbour]) await sandbox[Symbol.asyncDispose]();
  });
  for (const family of new Set(attacks.map((attack) => attack.family))) {
    describe(family, { concurrency: family === 'limits' || family === 'starvation' ? 1 : concurrency }, () => {
      for (const attack of attacks.filter((one) => one.family === family)) test(`an agent that ${attack.name}`, () => run(attack));
    });
  }

  async function run(attack: Attack): Promise<void> {
    const sandbox = (attack.alone ? undefined : shared.pop()) ?? (await driver().open({ limits: { ...smallLimits, ...attack.alone } }));
    let isClean = false;
    try {
      await runAttack(attack, sandbox);
      isClean = !attack.alone && (await clean(sandbox));
    } finally {
      if (isClean) shared.push(sandbox);
      else await sandbox[Symbol.asyncDispose]();
    }
    assert.equal((await neighbour.exec(['echo', 'well'], { timeoutMs })).stdout.toString(), 'well\n');
  }
}

async function runAttack({ agent, holds, timeoutMs: limitMs = timeoutMs }: Attack, sandbox: Sandbox): Promise<void> {
  try {
    const { output, end } = await act(sandbox, agent, limitMs);
    if (holds.output) assert.match(output, holds.output);
    if (holds.notOutput) assert.doesNotMatch(output, holds.notOutput);
    if (holds.ends && end !== undefined) assert.ok(holds.ends.includes(end), `${end}: ${output}`);
    await holds.and?.(sandbox);
    await (holds.isSelfHarm ? assertEnds(sandbox) : assertAlive(sandbox));
  } catch (error) {
    if (!holds.mayDie || !isBlamedOnPolicy(error)) throw error;
  }
}

/** Runs what the agent runs, and returns what it sees. */
export async function act(
  sandbox: Sandbox,
  agent: Attack['agent'],
  limitMs: number,
): Promise<{ readonly output: string; readonly end?: Awaited<ReturnType<Sandbox['runShell']>>['end'] }> {
  if ('shell' in agent) return sandbox.runShell(agent.shell, { timeoutMs: limitMs });
  if ('cell' in agent) return { output: (await sandbox.runPython(agent.cell, { timeoutMs: limitMs })).output };
  const { stdout, stderr } = await sandbox.exec(['python3', '-c', agent.python], { timeoutMs: limitMs });
  return { output: `${stdout}${stderr}` };
}

/** Programs run, and of three commands the last one does: the first may only report that the shell was replaced. */
export async function assertAlive(sandbox: Sandbox): Promise<void> {
  assert.equal((await sandbox.exec(['echo', 'well'], { timeoutMs })).stdout.toString(), 'well\n');
  const seen: string[] = [];
  for (let count = 0; count < 3; count += 1) {
    const { output, end, exitCode, cutBytes } = await sandbox.runShell('echo alive', { timeoutMs });
    seen.push(`${end}: ${output.slice(-200)}`);
    // A background program may print so much meanwhile that the word is in what was cut.
    if (end === 'exited' && (output.includes('alive\n') || (cutBytes > 0 && exitCode === 0))) return;
  }
  assert.fail(`the shell does not work: ${seen.join('; ')}`);
}

/** Calls end in time. */
async function assertEnds(sandbox: Sandbox): Promise<void> {
  await sandbox.exec(['true'], { timeoutMs });
  await sandbox.runShell('true', { timeoutMs });
}

export function isBlamedOnPolicy(error: unknown): boolean {
  return error instanceof RolloutError && error.blame === 'policy';
}

/** Ends what the attack left behind. False if the sandbox cannot be used again. */
async function clean(sandbox: Sandbox): Promise<boolean> {
  const removal = 'cd /workspace && rm -rf ./* ./.[!.]* /tmp/* 2>/dev/null; kill -9 -1';
  await sandbox.exec(['bash', '-c', removal], { timeoutMs }).catch(() => {}); // an attack may leave a sandbox that runs nothing
  const reply = await sandbox.runShell(':', { timeoutMs }).catch(() => undefined);
  return reply?.end === 'exited';
}
