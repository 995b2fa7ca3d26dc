// Runs the tests of the trainers' package that need no trainer, one test here for each Python file. What runs in a trainer's own code is
// tested in world/trainers. The house rules for Python are those of the client's tests.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

const inPackages = (path: string) => join(import.meta.dirname, '../..', path);
const env = {
  ...process.env,
  PYTHONPATH: ['trainers-python/src', 'client-python/src', 'client-python/test'].map(inPackages).join(':'),
  PYTHONDONTWRITEBYTECODE: '1',
};
const run = (...args: string[]) => spawnSync('python3', args, { cwd: import.meta.dirname, env, encoding: 'utf8' });
const probe = run('-c', 'import sys; sys.exit(sys.version_info < (3, 10))');
const options = { skip: probe.status === 0 ? false : 'Python 3.10 or later is required' };

for (const file of globSync('test_*.py', { cwd: import.meta.dirname }).sort()) {
  test(`python: ${file}`, options, () => {
    const { status, stdout, stderr } = run('-W', 'error', '-m', 'unittest', file.replace(/\.py$/, ''));
    assert.equal(status, 0, `${stdout}${stderr}`);
    assert.match(stderr, /Ran [1-9]\d* tests? /);
    assert.doesNotMatch(stderr, /skipped=/);
  });
}

test('the licence in the wheel is that of the project', () => {
  const read = (path: string) => readFileSync(join(import.meta.dirname, path), 'utf8');
  assert.equal(read('../LICENSE'), read('../../../LICENSE'));
});
