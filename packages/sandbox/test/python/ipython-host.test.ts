// Runs the Python host's own unit tests, where a Python with IPython is installed.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { makeTempFolder } from '@millrace/testkit/plain';

const python = '/usr/bin/python3';
const found = spawnSync(python, ['-c', 'import IPython']).status === 0;

test('the Python host passes its unit tests', {
  skip: found ? false : `${python} has no IPython; try: apt-get install ipython3`,
}, async () => {
  await using folder = await makeTempFolder('ipython');
  const env = { PATH: process.env.PATH, IPYTHONDIR: folder.path, PYTHONDONTWRITEBYTECODE: '1' };
  const { status, stderr } = spawnSync(python, [join(import.meta.dirname, 'ipython_host_test.py')], { env, encoding: 'utf8' });
  assert.equal(status, 0, stderr);
  assert.match(stderr, /Ran [1-9]\d* tests/);
});
