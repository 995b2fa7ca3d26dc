// Facts that a page repeats are those of the code: weights, built-in scenarios, versions of Node.js and Python.

import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { loadScenarios } from '@millrace/scenarios';

const root = join(import.meta.dirname, '..');
const read = (path: string) => readFileSync(join(root, path), 'utf8');
const words = ['no', 'one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine', 'ten'];

test('pages say how much the server and its workers weigh against sandboxes, as the control groups are set', () => {
  const [, workers, sandboxes] = /workers: (\d+), sandboxes: (\d+)/.exec(read('packages/sandbox/src/limits/cgroups.ts')) ?? [];
  assert.equal(Number(workers) / Number(sandboxes), 2);
  assert.match(read('ARCHITECTURE.md'), /the server and its workers as much as two\b/);
  assert.match(read('docs/sandbox.md'), /the server and its workers that of two\b/);
});

test('docs/scenarios.md names every built-in scenario, and counts them', async () => {
  const [, count = '', rest = ''] = /(\w+) scenarios are built in:([\s\S]*?)\n\n/.exec(read('docs/scenarios.md')) ?? [];
  const names = (await loadScenarios([])).names().filter((name) => name !== 'gateway'); // it is a route's, not a task's
  assert.equal(words.indexOf(count.toLowerCase()), names.length);
  for (const name of names) assert.ok(rest.includes(`\`${name}\``), name);
});

test('pages ask for the Node.js and the Python that the packages ask for', () => {
  const installation = read('docs/installation.md');
  const nodeOf = (folder: string) => JSON.parse(read(`packages/${folder}/package.json`)).engines?.node?.replace('>=', '');
  const engines = (folder: string) => nodeOf(folder) ?? JSON.parse(read(`packages/${folder}/package.json`)).publishConfig?.engines?.node;
  const pages = ['docs/installation.md', 'packages/cli/README.md', 'packages/client/README.md', 'README.md'];
  const asked = pages.flatMap((path) => [...read(path).matchAll(/Node\.js (\d[\d.]*\d|\d+) or later/g)].map(([, version]) => version));
  const known = ['cli', 'client'].map((folder) => String(engines(folder)).replace('>=', ''));
  assert.deepEqual([...new Set(asked)].sort(), known.sort());
  for (const path of globSync('packages/*-python/pyproject.toml', { cwd: root })) {
    const [, least = ''] = /requires-python = ">=([\d.]+)"/.exec(read(path)) ?? [];
    if (path.includes('client-python')) assert.ok(installation.includes(`Python ${least} or later`), `${path}: ${least}`);
  }
});

test('CONTRIBUTING.md names files that there are, and at most four for each common change', () => {
  const [, table = ''] = read('CONTRIBUTING.md').split(/^## .* common changes\n/m);
  const rows = (table.split('\n## ')[0] ?? '').split('\n').filter((line) => line.startsWith('| a '));
  assert.equal(rows.length, 6);
  for (const row of rows) {
    const paths = [...row.matchAll(/`(packages\/[^`]+)`/g)].map(([, path = '']) => path);
    assert.ok(paths.length > 0 && [...row.matchAll(/`[^`]+\.(?:ts|py)`|one file in/g)].length <= 4, row);
    for (const path of paths) assert.ok(existsSync(join(root, path)), path);
  }
});
