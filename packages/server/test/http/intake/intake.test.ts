// What a user's own scenario does wrong while a task is checked.

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { loadScenarios } from '@millrace/scenarios';
import { makeTempFolder } from '@millrace/testkit/plain';
import { errorOf, openFloor } from '../floor.ts';

test('a schema that throws is named with file and line, and is no fault of the service', async () => {
  await using folder = await makeTempFolder('intake');
  const file = join(folder.path, 'scenario.ts');
  await writeFile(
    file,
    `import { z } from 'zod';
const task = z.object({ text: z.string() }).refine(({ text }: { text: string }) => {
  return text.nope.length > 0;
});
export const scenario = { name: 'broken', task, init: () => ({}), evaluate: () => ({}) };
`,
  );
  await using floor = await openFloor({ scenarios: await loadScenarios([file]) });
  for (const [path, body] of [
    ['/v1/rollouts', { rollouts: [{ scenario: 'broken', task: { text: 'x' } }] }],
    ['/v1/evaluations', { scenario: 'broken', tasks: [{ text: 'x' }], n: 1 }],
  ] as const) {
    const reply = await floor.call('POST', path, body);
    assert.equal(reply.status, 400);
    assert.match(errorOf(reply).message, /^(rollouts|tasks)\[0\].*: scenario broken, task: TypeError: .*\/scenario\.ts:3:\d+\)$/);
  }
});
