// `node scripts/publish.ts v0.3.0 [--dry-run]`: publishes the npm packages that `npm run release` has written into release/, in the order in
// which they depend on each other. Refuses a tag that is not the version, a version without a date, and files that are not those of the
// checksums. The wheels are uploaded by the workflow, which needs no token for that.

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { findReleaseProblems } from './release.ts';
import { readChanges, readVersion } from './versions.ts';

/** Why the release of `tag` must not be published from the checkout at `root`; empty when it may. */
export function findPublishProblems(root: string, tag: string): string[] {
  const problems = findReleaseProblems(root);
  if (problems.length > 0) return problems;
  const version = readVersion(root);
  if (tag !== `v${version}`) problems.push(`the tag ${tag} is not v${version}, the version of the packages`);
  if (readChanges(root, version)?.date === 'unreleased') problems.push(`CHANGELOG.md marks ${version} as unreleased: date it first`);
  return [...problems, ...findWrongFiles(join(root, 'release'), version)];
}

/** The client depends on the protocol, so the protocol is there first. */
function npmFiles(version: string): string[] {
  return ['millrace-protocol', 'millrace-client', 'millrace'].map((name) => `${name}-${version}.tgz`);
}

function findWrongFiles(folder: string, version: string): string[] {
  const sums = join(folder, 'SHA256SUMS');
  if (!existsSync(sums)) return [`${sums} is not there: run npm run release`];
  const known = new Map(
    readFileSync(sums, 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line): [string, string] => [line.slice(66), line.slice(0, 64)]),
  );
  const missing = npmFiles(version).filter((name) => !known.has(name));
  const changed = [...known].filter(([name, sum]) => {
    const path = join(folder, name);
    return !existsSync(path) || createHash('sha256').update(readFileSync(path)).digest('hex') !== sum;
  });
  return [...missing.map((name) => `release/ has no ${name}`), ...changed.map(([name]) => `release/${name} is not the file of SHA256SUMS`)];
}

function main(): number {
  const { values, positionals } = parseArgs({ allowPositionals: true, options: { 'dry-run': { type: 'boolean', default: false } } });
  const root = join(import.meta.dirname, '..');
  const [tag = ''] = positionals;
  const problems = findPublishProblems(root, tag);
  for (const problem of problems) console.error(`publish: ${problem}`);
  if (problems.length > 0) return 1;
  for (const name of npmFiles(readVersion(root))) {
    // A provenance statement can be made only by a workflow that has the right to.
    const flags = values['dry-run'] ? ['--dry-run'] : process.env.GITHUB_ACTIONS === 'true' ? ['--provenance'] : [];
    const { status } = spawnSync('npm', ['publish', join(root, 'release', name), ...flags], { stdio: 'inherit' });
    if (status !== 0) return 1;
  }
  return 0;
}

if (import.meta.main) process.exitCode = main();
