// The chores of examples/train-gpu, which a real model learns: their scripted demonstrations are what a real shell does.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { silentLog } from '@millrace/base/log';
import { limits as limitsSchema } from '@millrace/protocol';
import { openBubblewrapDriver, probeBubblewrap } from '@millrace/sandbox';
import { makeTempFolder } from '@millrace/testkit/plain';
import { loadScenarios } from '../src/load/load.ts';
import { renderShellResult } from '../src/tools/bash-tool.ts';

type Turn = { text?: string; tool_calls?: [{ name: string; arguments: { command: string } }] };
type Chore = { task: { kind: string }; turns: Turn[]; outputs: string[] };

const probe = await probeBubblewrap();
const skip = probe.ok ? false : `${probe.reason}; try: ${probe.remedy}`;
const example = fileURLToPath(new URL('../../../examples/train-gpu/', import.meta.url));
const timeoutMs = 60_000;

test('every scripted demonstration of a chore earns the reward, with the outputs that it shows', { skip }, async () => {
  await using folder = await makeTempFolder('chores');
  const driver = await openBubblewrapDriver({ runDir: folder.path, log: silentLog });
  const scenario = (await loadScenarios([join(example, 'chores.ts')])).get('chores');
  assert.ok(scenario?.collect);
  const { collect } = scenario;
  const signal = new AbortController().signal;
  const limits = limitsSchema.parse({});

  const play = async ({ task: given, turns }: Chore) => {
    const parsed = scenario.task.safeParse(given);
    assert.ok(parsed.success, given.kind);
    const task = parsed.data;
    await using sandbox = await driver.open({});
    const context = { task, limits, signal, sandbox };
    await scenario.init(context);
    const outputs: string[] = [];
    for (const { tool_calls: calls } of turns)
      for (const call of calls ?? [])
        outputs.push(renderShellResult(await sandbox.runShell(call.arguments.command, { timeoutMs }), timeoutMs));
    const end = { stopReason: 'completed' as const, answer: turns.at(-1)?.text ?? '' };
    const artifact = await collect({ ...context, end });
    const openSandbox = () => assert.fail('the evaluation needs no sandbox');
    const { reward } = await scenario.evaluate({ task, limits, signal, end, artifact, sampledTokens: 1, openSandbox });
    return { reward, outputs };
  };

  const { stdout } = await promisify(execFile)('python3', [join(example, 'trainer/show_chores.py')]);
  const chores: Chore[] = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const kinds = chores.map(({ task }) => task.kind);
  assert.deepEqual(kinds, ['count', 'follow', 'sum', 'largest', 'rename']);
  for (const chore of chores) assert.deepEqual(await play(chore), { reward: 1, outputs: chore.outputs }, chore.task.kind);
  // The right answer is not enough where files must change.
  const rename = chores.at(-1);
  assert.ok(rename);
  assert.deepEqual(await play({ ...rename, turns: rename.turns.slice(-1) }), { reward: 0, outputs: [] });
});
