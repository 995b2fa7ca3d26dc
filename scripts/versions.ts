// The version of Millrace, which every npm and Python package shares. `node scripts/versions.ts` checks that all places agree;
// `node scripts/versions.ts 0.3.0` writes a new one everywhere.

import { existsSync, globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

interface VersionPlace {
  readonly file: string;
  readonly version: string;
}

/** Each pattern has the version as its second group. */
const patterns: readonly (readonly [RegExp, string])[] = [
  [/^( {2}"version": ")([^"]+)/gm, 'packages/*/package.json'],
  [/("@millrace\/[\w-]+": ")(\d[^"]*)/g, 'packages/*/package.json'],
  [/("packages\/[\w-]+": \{\s+(?:"name": "[^"]+",\s+)?"version": ")([^"]+)/g, 'package-lock.json'],
  [/("@millrace\/[\w-]+": ")(\d[^"]*)/g, 'package-lock.json'],
  [/^(version = ")([^"]+)/gm, 'packages/*-python/pyproject.toml'],
  [/^(dependencies = \["millrace==)([^"]+)/gm, 'packages/trainers-python/pyproject.toml'],
  [/^(__version__ = ")([^"]+)/gm, 'packages/client-python/src/millrace/{__init__,version}.py'],
];

/** Every file that names a version of Millrace, in the checkout at `root`. */
export function readVersions(root: string): VersionPlace[] {
  const found = places(root).flatMap(({ file, pattern }) =>
    [...readFileSync(join(root, file), 'utf8').matchAll(pattern)].map(([, , version = '']): [string, VersionPlace] => [
      `${file} ${version}`,
      { file, version },
    ]),
  );
  return [...new Map(found).values()];
}

/** The one version. Throws an Error that lists the places when they disagree. */
export function readVersion(root: string): string {
  const found = readVersions(root);
  const [version, ...others] = new Set(found.map((place) => place.version));
  if (version === undefined) throw new Error(`no version found in ${root}`);
  if (others.length > 0) throw new Error(`the versions differ:\n${found.map((place) => `  ${place.version}  ${place.file}`).join('\n')}`);
  return version;
}

/** The section of CHANGELOG.md about a version, without its heading; undefined where there is none. */
export function readChanges(root: string, version: string): { readonly date: string; readonly text: string } | undefined {
  const path = join(root, 'CHANGELOG.md');
  const sections = existsSync(path) ? readFileSync(path, 'utf8').split(/^## /m) : [];
  const section = sections.find((text) => text.startsWith(`[${version}]`));
  if (section === undefined) return undefined;
  const [heading = '', ...lines] = section.split('\n');
  return { date: heading.replace(/^\[[^\]]*\]( - )?/, ''), text: lines.join('\n').trim() };
}

export function writeVersions(root: string, version: string): void {
  for (const { file, pattern } of places(root)) {
    const text = readFileSync(join(root, file), 'utf8');
    writeFileSync(
      join(root, file),
      text.replace(pattern, (_, before: string) => before + version),
    );
  }
}

function places(root: string): { readonly file: string; readonly pattern: RegExp }[] {
  return patterns.flatMap(([pattern, glob]) => globSync(glob, { cwd: root }).map((file) => ({ file, pattern })));
}

if (import.meta.main) {
  const root = join(import.meta.dirname, '..');
  const [wanted] = process.argv.slice(2);
  if (wanted !== undefined) {
    if (!/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(wanted)) throw new Error(`${wanted} is not a version such as 1.2.3`);
    writeVersions(root, wanted);
  }
  console.log(readVersion(root));
}
