// The test command against test files that misbehave: each fails, and within its limit.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { makeTempFolder } from '@millrace/testkit';

const command = join(import.meta.dirname, '../scripts/test.ts');
const limitS = 5;

const files = {
  'a test that never ends': "test('waits', () => new Promise(() => setInterval(() => {}, 1000)));",
  'a test that blocks its process and ignores SIGTERM': "process.on('SIGTERM', () => {});\ntest('spins', () => { for (;;) {} });",
  'a file that stays open after its tests': "test('passes', () => {});\nsetInterval(() => {}, 1000);",
};

for (const [what, text] of Object.entries(files)) {
  test(`${what} fails within the limit of its file`, async () => {
    await using folder = await makeTempFolder('limit');
    await writeFile(join(folder.path, 'bad.test.ts'), `import { test } from 'node:test';\n${text}\n`);
    const startedAt = performance.now();
    const args = [command, '--file-limit-s', String(limitS), join(folder.path, '*.test.ts')];
    const { NODE_TEST_CONTEXT: _, ...env } = process.env;
    const { status, stdout } = spawnSync(process.execPath, args, { encoding: 'utf8', env, timeout: 60_000 });
    assert.equal(status, 1, stdout);
    assert.match(stdout, /bad\.test\.ts took more than 5 s and was killed|timed out after 5000ms/);
    assert.ok(performance.now() - startedAt < 30_000, `it took ${performance.now() - startedAt} ms`);
  });
}
