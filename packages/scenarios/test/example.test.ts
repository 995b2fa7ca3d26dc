// The example scenario and docs/scenarios.md, which shows it.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { loadScenarios } from '../src/load/load.ts';
import { toolNames } from '../src/tools/tool-names.ts';

const root = new URL('../../../', import.meta.url);
const example = new URL('examples/own-scenario/scenario.ts', root);
const docs = await readFile(new URL('docs/scenarios.md', root), 'utf8');

test('the documentation shows the examples as they are', async () => {
  for (const path of [example, new URL('examples/search/scenario.ts', root)])
    assert.ok(docs.includes(`\`\`\`ts\n${await readFile(path, 'utf8')}\`\`\``), path.pathname);
});

test('the documentation shows the examples in Python as they are', async () => {
  for (const path of ['examples/own-scenario/scenario.py', 'examples/guess/scenario.py'])
    assert.ok(docs.includes(`\`\`\`python\n${await readFile(new URL(path, root), 'utf8')}\`\`\``), path);
});

test('the tasks of the example match its schema', async () => {
  const scenario = (await loadScenarios([fileURLToPath(example)])).get('column-sum');
  const lines = (await readFile(new URL('tasks.jsonl', example), 'utf8')).trim().split('\n');
  for (const line of lines) assert.equal(scenario?.task.safeParse(JSON.parse(line).task).success, true, line);
});

test('the documentation lists every built-in tool', () => {
  for (const name of toolNames) assert.ok(docs.includes(`| \`${name}\` |`), name);
});
