// Claims about the scenarios that a service knows.

import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { loadScenarios } from '../../src/scenario/load.ts';

describe('loading scenarios', () => {
  let folder = '';
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'millrace-scenario-'));
  });
  after(() => rm(folder, { recursive: true }));

  const write = async (name: string, text: string) => {
    await writeFile(join(folder, name), text);
    return join(folder, name);
  };

  test('math and shell are there, also under the names that ProRL Agent uses', async () => {
    const scenarios = await loadScenarios([]);
    assert.deepEqual(scenarios.names(), ['math', 'shell']);
    assert.equal(scenarios.get('deepscaler')?.name, 'math');
    assert.equal(scenarios.get('chess'), undefined);
  });

  test("a user's own module is loaded from its path", async () => {
    const path = await write('own.mjs', 'export const scenario = { name: "own", task: { parse: (x) => x }, init() {}, evaluate() {} };');
    assert.equal((await loadScenarios([path])).get('own')?.name, 'own');
  });

  test('a module without a scenario is refused by its path', async () => {
    const path = await write('none.mjs', 'export const nothing = 1;');
    await assert.rejects(
      loadScenarios([path]),
      (error: Error) => error.message.includes(path) && error.message.includes('does not export a scenario'),
    );
  });

  test('two scenarios under one name are refused', async () => {
    const path = await write('math.mjs', 'export const scenario = { name: "math", task: {}, init() {}, evaluate() {} };');
    await assert.rejects(loadScenarios([path]), /two scenarios are named math/);
  });
});
