// The test command against test files that misbehave: each fails, and within its limit; one that fails once is run again only on request.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { test } from 'node:test';
import { makeTempFolder } from '@millrace/testkit/plain';
import { orderFiles } from '../scripts/tests/run-tests.ts';
import { slowFiles } from '../scripts/tests/slow-files.ts';

const command = join(import.meta.dirname, '../scripts/test.ts');
const limitS = 5;

const files = {
  'a test that never ends': "test('waits', () => new Promise(() => setInterval(() => {}, 1000)));",
  'a test that blocks its process and ignores SIGTERM': "process.on('SIGTERM', () => {});\ntest('spins', () => { for (;;) {} });",
  'a file that stays open after its tests': "test('passes', () => {});\nsetInterval(() => {}, 1000);",
};

for (const [what, text] of Object.entries(files)) {
  test(`${what} fails within the limit of its file`, async () => {
    const startedAt = performance.now();
    const { status, stdout } = await runFile(text, ['--file-limit-s', String(limitS)]);
    assert.equal(status, 1, stdout);
    assert.match(stdout, /bad\.test\.ts took more than 5 s and was killed|timed out after 5000ms/);
    assert.ok(performance.now() - startedAt < 30_000, `it took ${performance.now() - startedAt} ms`);
  });
}

const failsAtFirst = `import { mkdirSync } from 'node:fs';
export const define = () =>
  test('fails at first', () => { if (mkdirSync(import.meta.dirname + '/seen', { recursive: true }) !== undefined) throw new Error('first'); });`;

test('a file that fails at first passes only when repeats are allowed, and is named', async () => {
  const once = await runFile(`${failsAtFirst}\ndefine();`, []);
  assert.deepEqual([once.status, /second try/.test(once.stdout)], [1, false], once.stdout);
  const twice = await runFile(`${failsAtFirst}\ndefine();`, ['--repeat']);
  assert.equal(twice.status, 0, twice.stdout);
  assert.match(twice.stdout, /^ℹ passed only at the second try: .*bad\.test\.ts$/m);
});

test('a test of a shared suite that fails at first: the file that uses the suite is run again, not the suite', async () => {
  const { status, stdout } = await runFile("import { define } from './suite.ts';\ndefine();", ['--repeat'], failsAtFirst);
  assert.equal(status, 0, stdout);
  assert.match(stdout, /^ℹ passed only at the second try: .*bad\.test\.ts$/m);
});

test('a file that fails twice has failed', async () => {
  const { status, stdout } = await runFile("test('fails', () => { throw new Error('always'); });", ['--repeat']);
  assert.deepEqual([status, /^✖ 1 tests failed$/m.test(stdout)], [1, true], stdout);
});

test('files that take long are started first, and each of them exists', () => {
  const [first = '', second = ''] = slowFiles;
  const ordered = orderFiles(['test/words.test.ts', 'bench/report/page.test.ts', second, first, first], slowFiles);
  assert.deepEqual(
    ordered.map((file) => relative('.', file)),
    [first, second, 'bench/report/page.test.ts', 'test/words.test.ts'],
  );
  assert.deepEqual(
    slowFiles.filter((file) => !existsSync(join(import.meta.dirname, '..', file))),
    [],
  );
});

interface Outcome {
  readonly status: number | null;
  readonly stdout: string;
}

async function runFile(text: string, options: readonly string[], suite = ''): Promise<Outcome> {
  await using folder = await makeTempFolder('limit');
  for (const [name, content] of Object.entries({ 'bad.test.ts': text, 'suite.ts': suite }))
    await writeFile(join(folder.path, name), `import { test } from 'node:test';\n${content}\n`);
  const { NODE_TEST_CONTEXT: _, CI: _ci, ...env } = process.env;
  const args = [command, ...options, join(folder.path, '*.test.ts')];
  return spawnSync(process.execPath, args, { encoding: 'utf8', env, timeout: 60_000 });
}
