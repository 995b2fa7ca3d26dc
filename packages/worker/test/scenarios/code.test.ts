// Tasks of the built-in graders through a whole worker: right answers are rewarded, empty ones are not, and agents with tools leave a file.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { describe, test } from 'node:test';
import { probeBubblewrap } from '@millrace/sandbox';
import { bash, finish, says, WorkerBed } from '../pipeline/worker-bed.ts';

const probe = await probeBubblewrap();
const skip = probe.ok ? false : `${probe.reason}; try: ${probe.remedy}`;
const examples = new URL('../../../../examples/graders/', import.meta.url);

async function readLines(name: string): Promise<unknown[]> {
  const text = await readFile(new URL(name, examples), 'utf8');
  return text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
}

describe('the built-in graders', { skip, timeout: 240_000 }, () => {
  test('each example is rewarded with its right answer, and not without one', async () => {
    const tasks = (await readLines('tasks.jsonl')) as { scenario: string; task: Record<string, unknown> }[];
    const answers = (await readLines('answers.jsonl')) as string[];
    assert.equal(tasks.length, answers.length);
    const solve = answers.map((answer, at) => ({ question: String(tasks[at]?.task.question), answer }));
    await using bed = await WorkerBed.open({
      policy: (input) => {
        const opening = input.opening();
        const known = opening.includes('EMPTY') ? undefined : solve.find(({ question }) => opening.includes(question));
        return { text: known?.answer ?? 'I do not know.' };
      },
    });
    await bed.startWorker();
    const right = await bed.submitAll(...tasks.map((one, at) => ({ id: `right-${at}`, ...one })));
    const empty = await bed.submitAll(
      ...tasks.map(({ scenario, task }, at) => ({ id: `empty-${at}`, scenario, task: { ...task, question: `EMPTY ${task.question}` } })),
    );
    for (const id of right) {
      const { result } = await bed.ended(id);
      assert.equal(result?.reward, 1, `${id}: ${JSON.stringify(result?.score)}`);
    }
    for (const id of empty) assert.equal((await bed.ended(id)).result?.reward, 0, id);
  });

  test('an agent with tools leaves its program in a file', async () => {
    const write = bash("echo 'print(2 * int(input()))' > solution.py");
    await using bed = await WorkerBed.open({ policy: says(write, finish('done')) });
    await bed.startWorker();
    const task = { question: 'Double it.', tests: [{ input: '4', output: '8' }], tools: ['bash', 'finish'], shaping: { range: [-1, 1] } };
    const [id] = await bed.submitAll({ id: 'tools', scenario: 'code', task });
    assert.ok(id);
    const { result } = await bed.ended(id);
    assert.equal(result?.reward, 1);
    assert.deepEqual(result?.score?.parts, { correctness: 1 });
  });

  test('an agent with tools that leaves no program has the lowest reward of its range', async () => {
    await using bed = await WorkerBed.open({ policy: says(finish('done')) });
    await bed.startWorker();
    const task = { question: 'Double it.', tests: [{ input: '4', output: '8' }], tools: ['finish'], shaping: { range: [-1, 1] } };
    const [id] = await bed.submitAll({ id: 'nothing', scenario: 'code', task });
    assert.ok(id);
    assert.equal((await bed.ended(id)).result?.reward, -1);
  });
});
