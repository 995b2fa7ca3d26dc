// The wheel as users install it: it holds the package, its types and its licence, and building it leaves nothing in the tree.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { makeTempFolder } from '@millrace/testkit/plain';
import { python, runPython } from './run-python.ts';

const folder = join(import.meta.dirname, '..');
const builder = join(folder, 'build_wheel.py');
const remedy = 'building a wheel needs pip with setuptools and wheel; try: apt-get install python3-pip python3-setuptools python3-wheel';
const names = (text: string) => text.split('\n').map((line) => line.split(' ')[0] ?? '');

test('the wheel installs, holds types and licence but no tests, and building it leaves nothing behind', {
  skip: python.ok ? false : python.reason,
  timeout: 300_000,
}, async (t) => {
  await using temporary = await makeTempFolder('wheel');
  const before = readdirSync(folder, { recursive: true }).sort();
  const wheel = await buildWheel(temporary.path);
  if (wheel === undefined) return t.skip(remedy);
  assert.deepEqual(readdirSync(folder, { recursive: true }).sort(), before);

  const { output: listed } = await runPython(['-m', 'zipfile', '-l', wheel]);
  const files = names(listed);
  for (const wanted of ['millrace/py.typed', 'millrace/__init__.py', 'millrace/export/rows.py']) assert.ok(files.includes(wanted), listed);
  assert.ok(
    files.some((name) => /^millrace-[^/]+\.dist-info\/(licenses\/)?LICENSE$/.test(name)),
    listed,
  );
  assert.ok(!/test/.test(listed), listed);

  const site = join(temporary.path, 'site');
  const options = ['--no-index', '--no-deps', '--no-cache-dir', '--quiet', '--disable-pip-version-check'];
  const installed = await runPython(['-m', 'pip', 'install', ...options, '--target', site, wheel]);
  assert.equal(installed.code, 0, installed.output);
  const script = 'import millrace, millrace.export, millrace.dapo; print(millrace.__version__, millrace.__file__)';
  const { output } = await runPython(['-W', 'error', '-c', script], { env: { PYTHONPATH: site } });
  assert.equal(output.trim(), `${readVersion()} ${join(site, 'millrace', '__init__.py')}`);
});

test('the wheel of the adapters for trainers installs next to it and imports without any trainer', {
  skip: python.ok ? false : python.reason,
  timeout: 300_000,
}, async (t) => {
  await using temporary = await makeTempFolder('wheel');
  const wheel = await buildWheel(temporary.path, ['--package', join(folder, '../trainers-python')]);
  if (wheel === undefined) return t.skip(remedy);
  const site = join(temporary.path, 'site');
  const options = ['--no-index', '--no-deps', '--no-cache-dir', '--quiet', '--disable-pip-version-check'];
  const installed = await runPython(['-m', 'pip', 'install', ...options, '--target', site, wheel]);
  assert.equal(installed.code, 0, installed.output);
  const script = 'import millrace_trainers as one; print(one.__file__, bool(one.to_turns))';
  const { output } = await runPython(['-W', 'error', '-c', script], { env: { PYTHONPATH: `${site}:${join(folder, 'src')}` } });
  assert.equal(output.trim(), `${join(site, 'millrace_trainers', '__init__.py')} True`);
  const { output: listed } = await runPython(['-m', 'zipfile', '-l', wheel]);
  for (const wanted of ['py.typed', 'trl/__init__.py', 'verl/agent_loop.py'])
    assert.ok(listed.includes(`millrace_trainers/${wanted}`), listed);
});

test('the licence in the wheel is that of the project', () => {
  assert.equal(readFileSync(join(folder, 'LICENSE'), 'utf8'), readFileSync(join(folder, '../../LICENSE'), 'utf8'));
});

/** Uses the installed setuptools, or one that pip downloads; returns undefined if neither is available. */
async function buildWheel(out: string, options: readonly string[] = []): Promise<string | undefined> {
  const offline = await runPython([builder, '--offline', ...options, out]);
  if (offline.code === 0) return /^.*\.whl$/m.exec(offline.output)?.[0];
  const online = await runPython([builder, ...options, out]);
  if (online.code === 0) return /^.*\.whl$/m.exec(online.output)?.[0];
  if (/No module named pip|No matching distribution found for setuptools|Temporary failure|Connection/i.test(online.output))
    return undefined;
  assert.fail(`${offline.output}\n${online.output}`);
}

/** The TypeScript and Python clients have the same version. */
function readVersion(): string {
  return JSON.parse(readFileSync(join(folder, '../client/package.json'), 'utf8')).version;
}
