// A scenario with its own tool through the whole pipeline: a fake backend, the real template, parser, turn loop and sandbox.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { defineScenario, defineTool, ScenarioError, z } from '@millrace/scenarios/public';
import { renderCall } from '@millrace/testkit/plain';
import { finish, says, WorkerBed } from '../pipeline/worker-bed.ts';

const countLines = defineTool({
  name: 'count_lines',
  description: 'Counts the lines of a file in /workspace.',
  parameters: z.object({ path: z.string().describe('The file.') }),
  async run({ path }, { sandbox, timeoutMs, signal }) {
    if (path === 'forbidden') throw new ScenarioError('policy', 'it asked for a forbidden file');
    if (path === 'broken') throw new RangeError('the index is broken');
    const { stdout } = await sandbox.exec(['wc', '-l', path], { cwd: '/workspace', timeoutMs, signal });
    return stdout.toString('utf8');
  },
});

const lines = defineScenario({
  name: 'lines',
  task: z.strictObject({ lines: z.int().min(1) }),
  sandbox: () => ({}),
  async init({ task, sandbox, signal }) {
    await sandbox.writeFile('/workspace/data', 'x\n'.repeat(task.lines), { signal });
    return { messages: [{ role: 'user', content: 'How many lines?' }], tools: [countLines, 'finish'] };
  },
  evaluate: ({ task, end }) => ({ reward: Number(end.answer) === task.lines ? 1 : 0 }),
});

async function run(...turns: readonly string[]) {
  await using bed = await WorkerBed.open({ policy: says(...turns), scenarios: [lines] });
  await bed.startWorker();
  const record = await bed.ended(await bed.submit({ id: 'r1', scenario: 'lines', task: { lines: 3 } }));
  return { record, trajectory: await bed.store.trajectory(record.id) };
}

test('the model is offered the tool in its template, calls it in the sandbox, and reads its result', async () => {
  const call = (path: unknown) => renderCall('count_lines', { path });
  const { record, trajectory } = await run(call(7), call('data'), finish('3'));
  assert.deepEqual([record.state, record.result?.reward, record.result?.turns], ['done', 1, 3]);
  assert.match(trajectory?.segments[0]?.text ?? '', /Counts the lines of a file in \/workspace\./);
  assert.deepEqual(
    trajectory?.tools.map(({ name }) => name),
    ['count_lines', 'finish'],
  );
  const results = trajectory?.segments.filter(({ kind }) => kind === 'observation').map(({ messages }) => messages[0]?.content);
  assert.match(results?.[0] ?? '', /^count_lines: path: .*expected string/);
  assert.equal(results?.[1], '3 data\n');
});

test("an exception that only the argument of the agent causes is the agent's doing, and the scenario may say so itself", async () => {
  for (const [path, state, code, blame, reward] of [
    ['broken', 'done', 'policy-failed', 'policy', 0],
    ['forbidden', 'done', 'policy-failed', 'policy', 0],
  ] as const) {
    const { record } = await run(renderCall('count_lines', { path }));
    assert.deepEqual([record.state, record.failure?.code, record.failure?.blame], [state, code, blame]);
    assert.equal(record.result?.reward, reward);
    assert.match(record.failure?.message ?? '', /custom-tool\.test\.ts:\d+/);
  }
});
