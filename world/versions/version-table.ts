// What `npm run test:versions` proved, one file for each version and Python, and the table of docs/trainers.md that is made from them.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';

export const versionProofsFolder = join(import.meta.dirname, 'proofs');

const versionProof = z.strictObject({
  trainer: z.string(),
  package: z.string(),
  version: z.string(),
  /** As it calls itself, such as 3.12.1. */
  python: z.string(),
  date: z.iso.date(),
  /** The titles of the tests that passed. */
  claims: z.array(z.string()),
});
export type VersionProof = z.infer<typeof versionProof>;

export function readVersionProofs(): VersionProof[] {
  if (!existsSync(versionProofsFolder)) return [];
  const files = readdirSync(versionProofsFolder).filter((name) => name.endsWith('.json'));
  return files.sort().map((name) => versionProof.parse(JSON.parse(readFileSync(join(versionProofsFolder, name), 'utf8'))));
}

/** Markdown: a row for each version on each Python. */
export function renderVersionProofs(all: readonly VersionProof[]): string {
  const rows = all.map(
    ({ package: name, version, python, claims, date }) => `| ${name} ${version} | ${python} | ${claims.length} | ${date} |`,
  );
  return ['| version | Python | claims that held | date |', '|---|---|--:|---|', ...rows].join('\n');
}
