// The Python host under its own unit tests, where a Python with IPython is at hand.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

const python = '/usr/bin/python3';
const found = spawnSync(python, ['-c', 'import IPython']).status === 0;

test('the Python host passes its unit tests', { skip: found ? false : `${python} has no IPython; try: apt-get install ipython3` }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'ipython-'));
  const env = { PATH: process.env.PATH, IPYTHONDIR: folder, PYTHONDONTWRITEBYTECODE: '1' };
  const { status, stderr } = spawnSync(python, [join(import.meta.dirname, 'ipython_host_test.py')], { env, encoding: 'utf8' });
  rmSync(folder, { recursive: true });
  assert.equal(status, 0, stderr);
  assert.match(stderr, /Ran [1-9]\d* tests/);
});
