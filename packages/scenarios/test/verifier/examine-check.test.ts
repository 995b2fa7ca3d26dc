// Check scripts are examined in a thread: where a task is accepted, where it is judged, and for `task check`.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { shellScenario } from '../../src/shell.ts';
import { examineCheck } from '../../src/verifier/examine-check.ts';
import { lintCheck } from '../../src/verifier/lint/lint-check.ts';
import { letsLoopTurn } from './loop-turn.ts';

const nested = (open: string, close: string, times: number) => `${open.repeat(times)}${close.repeat(times)}`;
const task = (check: string) => ({ instruction: 'i', check });

for (const [what, script] of [
  ['a short script', '[ -f done ]'],
  ['nested substitutions', nested('$(', ')', 10_000)],
  ['nested expansions', nested('$' + '{a:-', '}', 5000)],
  ['many commands', 'true\n'.repeat(6000)],
  ['many back quotes', '`'.repeat(30_000)],
] as const) {
  test(`${what}: the event loop turns while a task with it is checked`, async () => {
    assert.ok(await letsLoopTurn(() => shellScenario.task.safeParseAsync(task(script))));
  });

  test(`${what}: a thread finds what the linter finds`, async () => {
    assert.deepEqual(await examineCheck(script), lintCheck(script));
  });
}

test('a dangerous check is still refused with its line, and a doubtful one has its warning', async () => {
  const parsed = await shellScenario.task.safeParseAsync(task('true\n(( ANSWER == 42 ))'));
  assert.ok(!parsed.success);
  assert.match(JSON.stringify(parsed.error.issues), /line 2: .*\(arithmetic\)/);
  const doubtful = await shellScenario.task.safeParseAsync(task(`true\n${'#'.repeat(1 << 19)}`));
  assert.ok(doubtful.success);
  assert.match((await shellScenario.warnings?.(doubtful.data))?.join() ?? '', /is not examined/);
});
