// Scenarios that a service loads: the built-in ones, and a user's own from a folder outside this repository.

import assert from 'node:assert/strict';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { makeTempFolder, type TempFolder } from '@millrace/testkit/plain';
import { loadScenarios } from '../src/load/load.ts';

const own = 'export const scenario = { name: "own", task, init() {}, evaluate() {} };';
const task = 'const task = { safeParse() {}, safeParseAsync() {} };';

describe('loading scenarios', () => {
  let folder: TempFolder;
  before(async () => {
    folder = await makeTempFolder('scenario');
  });
  after(() => folder[Symbol.asyncDispose]());

  const write = async (name: string, text: string) => {
    const path = join(folder.path, name);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, text);
    return path;
  };

  test('math, code, stem, shell, gym, swe and harbor are built in, also under the names that ProRL Agent uses', async () => {
    const scenarios = await loadScenarios([]);
    assert.deepEqual(scenarios.names(), ['math', 'code', 'stem', 'shell', 'gym', 'swe', 'harbor', 'gateway']);
    assert.equal(scenarios.get('deepscaler')?.name, 'math');
    assert.equal(scenarios.get('chess'), undefined);
  });

  for (const extension of ['mjs', 'js', 'ts', 'mts']) {
    test(`a module with the extension .${extension} is loaded from its path`, async () => {
      const path = await write(`plain/own.${extension}`, `${task}\n${own}`);
      assert.equal((await loadScenarios([path])).get('own')?.name, 'own');
    });
  }

  test('a TypeScript module in a folder without packages imports millrace/scenario and zod', async () => {
    await write('bare/tool.ts', "import { defineTool, z } from 'millrace/scenario';\nexport const make = () => [defineTool, z];");
    const path = await write(
      'bare/own.ts',
      `import { z } from 'zod';
       import { defineScenario, type Score, ScenarioError, z as ours } from 'millrace/scenario';
       import { make } from './tool.ts';
       export const sameZod: boolean = z === ours && make().length === 2;
       const score = (reward: number): Score => ({ reward });
       export const scenario = defineScenario({
         name: 'bare',
         aliases: [String(sameZod), new ScenarioError('task', 'x').blame],
         task: z.strictObject({ n: z.int() }),
         init: ({ task }) => ({ messages: [{ role: 'user', content: String(task.n + 1) }], tools: [] }),
         evaluate: () => score(1),
       });`,
    );
    const scenario = (await loadScenarios([path])).get('bare');
    assert.deepEqual(scenario?.aliases, ['true', 'task']);
    assert.deepEqual(scenario?.task.safeParse({ n: 1 }), { success: true, data: { n: 1 } });
    assert.equal(scenario?.task.safeParse({ n: 'x' }).success, false);
  });

  test("the user's own zod is used where the folder has one", async () => {
    await write('with-zod/node_modules/zod/package.json', '{ "name": "zod", "type": "module", "exports": "./index.js" }');
    await write('with-zod/node_modules/zod/index.js', 'export const z = { own: true, safeParse() {}, safeParseAsync() {} };');
    const path = await write(
      'with-zod/own.ts',
      "import { z } from 'zod';\nexport const scenario = { name: 'with-zod', task: z, init() {}, evaluate() {} };",
    );
    assert.equal(Reflect.get((await loadScenarios([path])).get('with-zod')?.task ?? {}, 'own'), true);
  });

  test('a scenario may be reached through a link', async () => {
    const path = await write('real/own.ts', `import 'zod';\n${task}\n${own.replace('"own"', '"linked"')}`);
    await symlink(path, join(folder.path, 'linked.ts'));
    assert.equal((await loadScenarios([join(folder.path, 'linked.ts')])).get('linked')?.name, 'linked');
  });

  const refused: [string, string, RegExp][] = [
    ['none.ts', 'export const nothing = 1;', /none\.ts does not export a scenario \(it exports nothing\): write `export const scenario/],
    ['empty.mjs', '', /does not export a scenario \(it exports nothing\)/],
    ['default.ts', 'export default {};', /default\.ts has a default export; a scenario is a named one: write `export const scenario/],
    ['syntax.ts', 'const a = 1;\nexport const = 3;', /syntax\.ts:2: syntax error: /],
    ['syntax.mjs', 'const a = 1;\nexport const = 3;', /syntax\.mjs:2: syntax error: Unexpected token/],
    ['enum.ts', 'export const a = 1;\nenum X { A }', /enum\.ts:2: TypeScript enum is not supported.*write a union of strings/],
    ['throws.ts', 'const a = 1;\nnope();', /throws\.ts:2:1: the module threw while it was loaded: nope is not defined/],
    ['package.ts', "import 'left-pad-2';", /Cannot find package 'left-pad-2'.*run `npm install left-pad-2` in /],
    ['relative.ts', "import './data';", /Cannot find module .*relative imports need their extension/],
    ['type.ts', "import { Score } from 'millrace/scenario';\nexport const scenario = 1;", /type\.ts:1: .*'Score'; import a type with/],
    ['scenario.tsx', 'x = 1', /a scenario is a file in TypeScript, JavaScript or Python \(\.ts, \.mts, \.js, \.mjs, \.py\), not \.tsx/],
    ['number.ts', 'export const scenario = 1;', /its `scenario` cannot be used: it is number, not an object/],
    [
      'fields.mjs',
      'export const scenario = { name: "", task: {}, init: 1, collect() {}, prepare: {}, aliases: "x" };',
      /`name` must be .*; `task` must be a zod 4 schema; `init` must be a function; `evaluate` must be a function; `prepare` must have .*; `prepare` needs `sandbox`; `collect` needs `sandbox`; `aliases` must be/,
    ],
    ['math.mjs', `${task}\n${own.replace('"own"', '"math"')}`, /two scenarios are named math: a built-in one and .*math\.mjs/],
  ];
  for (const [name, text, message] of refused) {
    test(`${name} is refused with its path and what to do`, async () => {
      await assert.rejects(loadScenarios([await write(`refused/${name}`, text)]), message);
    });
  }

  test('a path without a file and a folder are refused', async () => {
    await assert.rejects(loadScenarios([join(folder.path, 'gone.ts')]), /gone\.ts: there is no such file/);
    await assert.rejects(loadScenarios([folder.path]), /is a folder; give the path of the scenario's file in it/);
  });
});
