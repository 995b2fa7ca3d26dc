// `millrace task attack`: what it prints, its exit codes, that a frozen player and an interrupt leave nothing behind, and that a few hackers are
// held by one task of each example.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { probeBubblewrap } from '@millrace/sandbox';
import { readConfig } from '@millrace/server';
import { makeTempFolder } from '@millrace/testkit/plain';
import { hackers } from '../../src/attack/hackers/catalogue.ts';
import { hackerKinds } from '../../src/attack/hackers/hacker.ts';
import { Player } from '../../src/attack/player.ts';
import { playerOrder } from '../../src/attack/wire.ts';
import { millrace, openIo } from '../fake-io.ts';

const probe = await probeBubblewrap();
const skip = probe.ok ? false : `${probe.reason}; try: ${probe.remedy}`;
const examples = join(import.meta.dirname, '../../../../examples');
const run = (...argv: string[]) => millrace(['task', 'attack', ...argv], openIo());

interface AttackJson {
  readonly counts: Readonly<Record<string, number>>;
  readonly tasks: readonly {
    readonly task: string;
    readonly broken?: string;
    readonly attacks: readonly { readonly hacker: string; readonly outcome: string; readonly fix?: string }[];
  }[];
}

const runJson = async (...argv: string[]) => {
  const { code, out, err } = await run(...argv, '--json');
  return { code, report: JSON.parse(out) as AttackJson, err };
};

test('every hacker has a name of its own, a kind, an explanation and a fix', async () => {
  assert.equal(new Set(hackers.map(({ name }) => name)).size, hackers.length);
  for (const { name, explain, fix } of hackers) for (const text of [explain, fix]) assert.match(text, /^[A-Z`].{20,}[.)]$/, name);
  for (const kind of hackerKinds) assert.ok(hackers.filter((one) => one.kind === kind).length >= 5, kind);
  const { code, out } = await run('--list', '--only', 'dodge');
  assert.equal(code, 0);
  assert.match(out, /^hacker +kind +what it does\n/);
  assert.match(out, /superscript +dodge +Gives digits such as ²/);
  assert.doesNotMatch(out, / forge /);
});

test('a hacker that does not exist, and a command without tasks, are refused', async () => {
  const { code, err } = await run('tasks.jsonl', '--only', 'superscripts');
  assert.deepEqual([code, /there is no hacker superscripts; did you mean superscript\?/.test(err)], [2, true]);
  assert.equal((await run()).code, 2);
});

test('one task of each kind of example holds against a few hackers', { skip, timeout: 200_000 }, async () => {
  const graders = readFileSync(join(examples, 'graders/tasks.jsonl'), 'utf8').split('\n').filter(Boolean);
  await using folder = await makeTempFolder('at');
  const path = join(folder.path, 'tasks.jsonl');
  const shell = { scenario: 'shell', task: { instruction: 'Write 42 to n.txt.', check: '[ "$(cat n.txt)" = 42 ]' } };
  const [own = ''] = readFileSync(join(examples, 'own-scenario/tasks.jsonl'), 'utf8').split('\n');
  await writeFile(path, [graders[0], graders[3], graders[6], own, JSON.stringify(shell)].join('\n'));
  const only = 'everything-printed,link-to-environ,exit-zero,fifo,all-options';
  const { code, report } = await runJson(path, '--only', only, '--scenarios', join(examples, 'own-scenario/scenario.ts'));
  const through = report.tasks.flatMap(({ task, broken, attacks }) => [
    broken,
    ...attacks.filter(({ outcome }) => outcome !== 'held').map((one) => `${task}: ${JSON.stringify(one)}`),
  ]);
  assert.deepEqual(
    through.filter((one) => one !== undefined),
    [],
  );
  assert.equal(code, 0);
  for (const name of only.split(','))
    assert.ok(
      report.tasks.some(({ attacks }) => attacks.some(({ hacker }) => hacker === name)),
      name,
    );
});

const quadratic = `import { defineScenario, z } from 'millrace/scenario';
export const scenario = defineScenario({
  name: 'stuck',
  task: z.strictObject({}),
  init: () => ({ messages: [{ role: 'user', content: 'Say yes.' }], tools: [] }),
  evaluate({ end }) {
    for (let turn = 0; end.answer.length > 1000 && turn < 1e12; turn += 1);
    return { reward: end.answer === 'yes' ? 1 : 0 };
  },
});
`;

test('a player that a hacker froze is stopped and replaced; the table names the fix', { skip, timeout: 200_000 }, async () => {
  await using folder = await makeTempFolder('at');
  const [path, scenario] = [join(folder.path, 'tasks.jsonl'), join(folder.path, 'scenario.ts')];
  await writeFile(scenario, quadratic);
  await writeFile(path, '{"scenario": "stuck", "task": {}}\n{"scenario": "nowhere", "task": {}}\n');
  const { code, out } = await run(path, '--scenarios', scenario, '--only', 'long-line,give-up', '--parallel', '1', '--limit', '2');
  assert.equal(code, 1);
  assert.match(out, /give-up +dodge +1\n/);
  assert.match(out, /long-line \(freeze\) got through\n.*\n {2}→ Bound the length/);
  assert.match(out, /froze: judging kept the event loop for \d+ s of CPU time, and was stopped/);
  assert.match(out, /task 2 cannot be attacked: there is no scenario nowhere/);
});

test('an interrupt ends the attack with exit code 1 and leaves no sandbox', { skip, timeout: 100_000 }, async () => {
  await using folder = await makeTempFolder('at');
  const path = join(folder.path, 'tasks.jsonl');
  const task = { instruction: 'Write 42 to n.txt.', check: 'sleep 30; [ "$(cat n.txt)" = 42 ]', env: { MARK: folder.path } };
  await writeFile(path, `${JSON.stringify({ scenario: 'shell', task })}\n`);
  const io = openIo();
  const ended = millrace(['task', 'attack', path], io);
  while (!isRunning(folder.path)) await new Promise((resolve) => setTimeout(resolve, 50));
  io.interrupt();
  assert.equal((await ended).code, 1);
  assert.equal(isRunning(folder.path), false);
});

/** Whether a program with this text in its variables runs on the machine. */
function isRunning(mark: string): boolean {
  return readdirSync('/proc').some((pid) => {
    try {
      return /^\d+$/.test(pid) && Number(pid) !== process.pid && readFileSync(`/proc/${pid}/environ`, 'utf8').includes(`MARK=${mark}`);
    } catch {
      return false; // it has ended, or belongs to another user
    }
  });
}

test('an attack whose player starts only after the interrupt is not begun', { skip, timeout: 100_000 }, async () => {
  await using folder = await makeTempFolder('at');
  const config = readConfig(undefined, { data: join(folder.path, 'data'), run: join(folder.path, 'run') });
  await using player = new Player({ config, folder: folder.path });
  const order = playerOrder.parse({ kind: 'attack', key: 'a', scenario: 'shell', task: {}, limits: {}, hacker: 'give-up' });
  assert.ok(order.kind === 'attack');
  await assert.rejects(player.attack(order, AbortSignal.abort(new Error('interrupted'))), /interrupted/);
});
