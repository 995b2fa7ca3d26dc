// The README's promises that a reader would try first: its Python loop is the one that CI runs, and its figures and links exist.

import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';

const root = join(import.meta.dirname, '..');
const read = (path: string) => readFileSync(join(root, path), 'utf8');

test("the README's training loop is the one of the Python client, which runs against a real service", () => {
  const [, loop = ''] = /```python\n([\s\S]*?)```/.exec(read('README.md')) ?? [];
  assert.ok(loop.length > 0, 'the README has a Python block');
  assert.ok(read('packages/client-python/README.md').includes(loop), 'packages/client-python/README.md has the same block');
});

test('every figure in the README was printed by the benchmarks', () => {
  const [, table = ''] = /## Six numbers\n([\s\S]*?)\n## /.exec(read('README.md')) ?? [];
  const benchmarks = read('docs/benchmarks.md');
  const figures = [...table.matchAll(/\d+(?:\.\d+)+/g)].map(([figure]) => figure);
  assert.ok(figures.length >= 6, 'the README has six numbers');
  assert.deepEqual(
    figures.filter((figure) => !benchmarks.includes(figure)),
    [],
  );
});

test('every link between files of the documentation leads somewhere', () => {
  const pages = globSync(['*.md', 'docs/**/*.md', 'examples/**/*.md', 'packages/*/README.md'], { cwd: root });
  const dead = pages.flatMap((page) =>
    [...read(page).matchAll(/\]\((?!https?:|#|mailto:)([^)#\s]+)/g)]
      .map(([, target = '']) => target)
      .filter((target) => !existsSync(join(root, dirname(page), target)))
      .map((target) => `${page}: ${target}`),
  );
  assert.deepEqual(dead, []);
});
