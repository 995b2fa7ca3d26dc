// Every regular expression of the packages, and whether its time is linear in the length of the text, by recheck. A check takes seconds, so
// patterns that were found linear are recorded: `node test/patterns/check-patterns.ts` checks the others and writes the record again.

import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findPatterns } from './find-patterns.ts';

const root = join(import.meta.dirname, '../..');
const recordPath = join(import.meta.dirname, 'linear-patterns.txt');

export interface UsedPattern {
  /** As a literal: `/a+/g`. */
  readonly literal: string;
  readonly source: string;
  readonly flags: string;
  readonly places: readonly string[];
}

/** Without testkit, which reads no text of an agent or a caller. */
export function listPatterns(): readonly UsedPattern[] {
  const used = new Map<string, { source: string; flags: string; places: string[] }>();
  for (const path of globSync('packages/{protocol,gateway,base,model,engines,sandbox,store,scenarios,server,client,cli}/src/**/*.ts', {
    cwd: root,
  }).sort())
    for (const { source, flags, line } of findPatterns(readFileSync(join(root, path), 'utf8')).patterns) {
      const entry = used.get(`/${source}/${flags}`) ?? { source, flags, places: [] };
      entry.places.push(`${path}:${line}`);
      used.set(`/${source}/${flags}`, entry);
    }
  return [...used].map(([literal, rest]) => ({ literal, ...rest }));
}

export const readRecord = (): ReadonlySet<string> => new Set(readFileSync(recordPath, 'utf8').split('\n'));

/** Undefined if it is linear, and otherwise what recheck says. */
export async function checkPattern({ source, flags }: UsedPattern, timeoutMs: number): Promise<string | undefined> {
  process.env.RECHECK_BACKEND = 'pure'; // read when it is first called
  const { check } = await import('recheck');
  const found = await check(source, flags, { timeout: timeoutMs });
  if (found.status === 'safe') return undefined;
  return found.status === 'vulnerable' ? found.complexity.summary : `unknown: ${found.error.kind}`;
}

async function record(): Promise<void> {
  const known = readRecord();
  const linear: string[] = [];
  const save = () => writeFileSync(recordPath, `${[...new Set(linear)].sort().join('\n')}\n`);
  for (const pattern of listPatterns()) {
    const fault = known.has(pattern.literal) ? undefined : await checkPattern(pattern, 30_000);
    if (fault === undefined) linear.push(pattern.literal);
    else console.log(`${pattern.places.join(' ')}: ${fault}: ${pattern.literal}`);
  }
  save();
}

if (import.meta.main) await record();
