// `millrace task check --repeat --busy`: a verdict that changes between runs is reported with its reasons, and the load ends with the command.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { probeBubblewrap } from '@millrace/sandbox';
import { makeTempFolder } from '@millrace/testkit/plain';
import { millrace, openIo } from '../fake-io.ts';

const probe = await probeBubblewrap();
const skip = probe.ok ? false : `${probe.reason}; try: ${probe.remedy}`;
const scenario = join(import.meta.dirname, '../attack/flaky.py');
const run = (...argv: string[]) => millrace(['task', 'check', ...argv], openIo());

interface Checked {
  readonly task: string;
  readonly outcome: string;
  readonly why?: string;
  readonly changed: readonly {
    readonly candidate: string;
    readonly verdicts: readonly { readonly reward: number | null; readonly times: number; readonly why?: string }[];
  }[];
}

test('a verdict that changes between runs is reported, with how often and why', { skip, timeout: 100_000 }, async () => {
  await using folder = await makeTempFolder('cr');
  const path = join(folder.path, 'tasks.jsonl');
  const kinds = ['steady', 'coin', 'crash'];
  await writeFile(path, kinds.map((kind) => `${JSON.stringify({ id: kind, scenario: 'flaky', task: { kind } })}\n`).join(''));
  const { code, out } = await run(path, '--scenarios', scenario, '--repeat', '4', '--parallel', '1', '--json');
  const { tasks } = JSON.parse(out) as { tasks: Checked[] };
  assert.equal(code, 1);
  assert.deepEqual(
    tasks.map(({ task, outcome, changed }) => [
      task,
      outcome,
      changed.flatMap(({ candidate, verdicts }) => [candidate, ...verdicts.map(({ reward, times }) => [reward, times])]),
    ]),
    [
      ['steady', 'right', []],
      ['coin', 'flaky', ['empty', [0, 2], [0.5, 2]]],
      ['crash', 'flaky', ['empty', [0, 3], [null, 1]]],
    ],
  );
  assert.match(tasks[2]?.why ?? '', /an empty answer got 0 3 ×.*no reward 1 × \(evaluate-failed: .*the licence server did not answer/);
  const again = await run(path, '--scenarios', scenario, '--repeat', '3');
  assert.match(again.out, /coin +differs between runs/);
});

test('a shell task, which has no solution of its own, is right if nothing fails it; doubts about its check are shown', {
  skip,
}, async () => {
  await using folder = await makeTempFolder('cr');
  const path = join(folder.path, 'tasks.jsonl');
  const checks = ['[ "$(judged --file /tmp/expected.txt cat n.txt)" = 42 ]', '[ ! -e n.txt ]'];
  const lines = checks.map((check) => `${JSON.stringify({ scenario: 'shell', task: { instruction: 'Write 42 to n.txt.', check } })}\n`);
  await writeFile(path, lines.join(''));
  const { code, out } = await run(path);
  assert.equal(code, 1);
  assert.match(out, /task 1 +right .*\n +check: line 1: .*\(judged-file\)/);
  assert.match(out, /task 2 +passes without a solution/);
});

const slow = `import { defineScenario, z } from 'millrace/scenario';
const burn = 'import time\\nwhile time.process_time() < 0.6: pass';
export const scenario = defineScenario({
  name: 'slow',
  task: z.strictObject({}),
  init: () => ({ messages: [{ role: 'user', content: 'Be right.' }], tools: [] }),
  evaluate: () => ({ reward: 0 }),
  async trial({ solution, openSandbox, signal }) {
    const sandbox = await openSandbox({});
    const { exitCode } = await sandbox.exec(['python3', '-c', burn], { timeoutMs: 1000, signal });
    return { isRight: exitCode === 0 && solution === 'gold', tests: {} };
  },
});
`;

test('a solution that needs most of its time stays right on a busy machine, and the load ends with the command', {
  skip,
  timeout: 150_000,
}, async () => {
  await using folder = await makeTempFolder('cr');
  const [path, module] = [join(folder.path, 'tasks.jsonl'), join(folder.path, 'slow.ts')];
  await writeFile(module, slow);
  await writeFile(path, '{"scenario": "slow", "task": {}}\n');
  const io = openIo();
  const checked = millrace(['task', 'check', path, '--scenarios', module, '--busy'], io);
  while (burners() === 0) await new Promise((resolve) => setTimeout(resolve, 50));
  const { code, out } = await checked;
  assert.equal(code, 0, out);
  assert.match(out, /1 of 1 tasks are right/);
  assert.equal(burners(), 0);
  assert.match(readFileSync(`${path}.checked.jsonl`, 'utf8'), /"busy":true/);
});

/** Programs of this process that keep the cores busy. */
function burners(): number {
  return readdirSync('/proc').filter((pid) => {
    try {
      return (
        /^\d+$/.test(pid) &&
        readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(`kill -0 "$0" 2>/dev/null`) &&
        readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(`\0${process.pid}\0`)
      );
    } catch {
      return false; // it has ended
    }
  }).length;
}
