// What must agree before a release: versions, the changelog, and a clean tree.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { makeTempFolder } from '@millrace/testkit/plain';
import { findReleaseProblems } from '../../scripts/release.ts';
import { readChanges, readVersion, readVersions, writeVersions } from '../../scripts/versions.ts';

const root = join(import.meta.dirname, '../..');

test('all npm packages and the Python client have one version, and the changelog describes it', () => {
  const version = readVersion(root);
  assert.notEqual(readChanges(root, version)?.text ?? '', '', `CHANGELOG.md has no section [${version}]`);
  const files = readVersions(root).map(({ file }) => file);
  for (const needed of ['packages/cli/package.json', 'package-lock.json']) assert.ok(files.includes(needed), needed);
  assert.ok(
    files.some((file) => file.startsWith('packages/client-python/')),
    'no version of the Python client',
  );
});

test('a release is refused while the tree has changes, versions differ, or the changelog lacks the version', async () => {
  await using folder = await makeTempFolder('mr-release');
  const write = async (path: string, text: string) => {
    await mkdir(dirname(join(folder.path, path)), { recursive: true });
    await writeFile(join(folder.path, path), text);
  };
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=test', '-c', 'user.email=test@example.org', ...args], { cwd: folder.path, stdio: 'ignore' });
  const manifest = (name: string, version: string) => `{\n  "name": "${name}",\n  "version": "${version}"\n}\n`;
  await write('packages/cli/package.json', manifest('millrace', '1.2.0'));
  await write('packages/client/package.json', manifest('@millrace/client', '1.1.0'));
  await write('CHANGELOG.md', '# Changelog\n\n## [1.1.0] - 2026-01-01\n\n- It was.\n');
  git('init');
  const [dirty = '', different = '', ...more] = findReleaseProblems(folder.path);
  assert.match(dirty, /changes that are not committed/);
  assert.match(different, /the versions differ:\n.*1\.\d\.0 {2}packages\/cl/);
  assert.deepEqual(more, []);

  writeVersions(folder.path, '1.2.0');
  git('add', '-A');
  git('commit', '-m', 'all');
  assert.deepEqual(findReleaseProblems(folder.path), ['CHANGELOG.md has no section [1.2.0]']);

  await write('CHANGELOG.md', '# Changelog\n\n## [1.2.0] - unreleased\n\n- It is.\n\n## [1.1.0] - 2026-01-01\n');
  git('commit', '-am', 'changes');
  assert.deepEqual(findReleaseProblems(folder.path), []);
  assert.deepEqual(readChanges(folder.path, '1.2.0'), { date: 'unreleased', text: '- It is.' });
});
