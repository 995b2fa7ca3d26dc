// An exception in a user's scenario leads to its line: in the failure for the caller, and with its stack in the worker's log.

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { type Fields, silentLog } from '@millrace/base/log';
import { makeTempFolder } from '@millrace/testkit/plain';
import { says, WorkerBed } from './worker-bed.ts';

const source = `import { check } from './check.mjs';
class Broken extends Error {}
export const scenario = {
  name: 'broken',
  task: { safeParse: (data) => ({ success: true, data }), safeParseAsync: async (data) => ({ success: true, data }) },
  async init({ task: { at } }) {
    if (at === 'init') throw new Broken();
    return { messages: [{ role: 'user', content: 'go' }], tools: [] };
  },
  async evaluate() {
    return await check(undefined);
  },
};
`;

test('a failure names the line of the scenario, and the log has the stack', async () => {
  await using folder = await makeTempFolder('a scenario');
  const file = join(folder.path, 'broken.mjs');
  await writeFile(join(folder.path, 'check.mjs'), 'export const check = async (value) => value.reward;\n');
  await writeFile(file, source);
  const logged: Fields[] = [];
  const log = { ...silentLog, warn: (_event: string, fields: Fields = {}) => logged.push(fields) };
  await using bed = await WorkerBed.open({ scenarioFiles: [file], log, policy: says('done') });
  await bed.startWorker();
  const limits = { max_retries: 0 };
  const [init, evaluate] = await bed.submitAll(
    { id: 'in-init', scenario: 'broken', task: { at: 'init' }, limits },
    { id: 'in-evaluate', scenario: 'broken', task: {}, limits },
  );
  const failures = [(await bed.ended(init)).failure, (await bed.ended(evaluate)).failure];
  assert.deepEqual(
    failures.map((failure) => failure?.code),
    ['init-failed', 'evaluate-failed'],
  );
  assert.match(failures[0]?.message ?? '', /^scenario broken, init: Broken \(.*broken\.mjs:7:\d+\)$/);
  assert.match(failures[1]?.message ?? '', /^scenario broken, evaluate: TypeError: Cannot read .* \(.*check\.mjs:1:\d+\)$/);
  const stack = String(logged.find(({ rolloutId }) => rolloutId === evaluate)?.stack);
  assert.match(stack, /^TypeError: Cannot read properties of undefined.*\n\s+at check .*check\.mjs:1:.*\n\s+at .*broken\.mjs:11:/);
});
