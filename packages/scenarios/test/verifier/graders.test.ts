// Grading in threads: no answer blocks the event loop, and a text that exhausts its grader has the lowest verdict.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { measureLoopBlock } from '@millrace/testkit/plain';
import { compareRuns } from '../../src/code/output/compare-runs.ts';
import { mathScenario } from '../../src/math/math.ts';
import type { EvaluateContext } from '../../src/scenario.ts';
import { gradeInThread } from '../../src/verifier/graders.ts';

const rule = { by: 'words', tolerance: 0.1 } as const;
/** Comparing the long ones takes more than the CPU time that these tests allow. */
const [short, long] = [1, 500_000].map((count) => '1.0 '.repeat(count));
const runOf = (given = '', expected = '') => [[{ given: Buffer.from(`${given}1`), expected: [expected] }], rule] as const;
const cpuMs = 10;

test('a text that exhausts its grader has no verdict of its own, and the next text has one', async () => {
  assert.equal(await gradeInThread(compareRuns, runOf(long, long), { cpuMs, controls: () => [runOf(short, short)] }), undefined);
  assert.deepEqual(await gradeInThread(compareRuns, runOf(short, short), {}), [0]);
});

test('if the expected text exhausts its grader too, the verifier is at fault', async () => {
  const graded = gradeInThread(compareRuns, runOf(long, long), { cpuMs, controls: () => [runOf(long, long)] });
  await assert.rejects(graded, { code: 'evaluate-failed', message: /the expected answer exhausts its grader \(cpu\)/ });
});

for (const [what, answer] of [
  ['announced answers', 'The answer is '.repeat(70_000)],
  ['line breaks after an announced answer', `The answer is${'\n'.repeat(1_000_000)}`],
  ['open boxes', '\\boxed{'.repeat(150_000)],
  ['open brackets in a box', `\\boxed{${'('.repeat(1_000_000)}}`],
  ['digits', `\\boxed{${'9'.repeat(1_000_000)}}`],
] as const)
  test(`a megabyte of ${what} blocks the event loop of its worker for less than 20 ms`, async () => {
    const parsed = await mathScenario.task.safeParseAsync({ question: 'q', answer: '\\{1,2\\}' });
    assert.ok(parsed.success);
    const task = parsed.data;
    const context = { task, end: { answer }, sampledTokens: 1, signal: new AbortController().signal };
    let reward: number | undefined;
    const blockedMs = await measureLoopBlock(async () => {
      ({ reward } = await mathScenario.evaluate(context as unknown as EvaluateContext<typeof task>));
    });
    assert.equal(reward, 0);
    assert.ok(blockedMs < 20, `${blockedMs} ms`);
  });
