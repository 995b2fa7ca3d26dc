// Keeps the quaintest words out of everything people read: comments, messages, names, test titles, docs. Each has a usual replacement.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

const root = join(import.meta.dirname, '..');

/** A word that is refused, and what to write instead. Word boundaries see through camelCase and kebab-case. */
const refused: readonly (readonly [RegExp, string])[] = [
  [/\bmend(s|ed|ing)?\b/i, 'recover, fix, repair'],
  [/\b(un|is |are |was |were )?told\b/i, 'reported, notified, was informed'],
  [/\b(over)?hear(s|d)?\b/i, 'receive, read, see'],
  [/\bun(kept|dropped|reached|heard)\b/i, 'a log event that says what failed: batch-save-failed'],
  [/\banew\b/i, 'again'],
  [/\b(nobody|whoever|whichever|whomever)\b/i, 'no one, no process; any client that; either'],
  [/\bbeside\b/i, 'next to; in addition to; compared with'],
  [/\bso (long as|often|many times)\b/i, 'while; up to N times'],
  [/\b(kept|waits?|waited|lives?|lived) so long\b/i, 'how long it is kept'],
  [/\b(process|folder|session|file|thread|group|port|list)e?s? of (its|their|his) own\b/i, 'its own (as in: its own process)'],
  [/\bwant of\b/i, 'lack of, without'],
  [/\bheretofore|thereof|therein|whereby|thereby|wherein\b/i, 'plain words'],
  [/\b(amiss|perchance|betimes|needful|forthwith|henceforth)\b/i, 'plain words'],
];

/** The account named nobody exists on every Linux machine; a migration names the column it renames. */
const allowed = /nobody:x|nobody = 65534|'nobody'|user nobody|pause_heard/;

test('no file that people read uses a word we would not say to a colleague', () => {
  const { stdout } = spawnSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], { cwd: root, encoding: 'utf8' });
  const paths = stdout.split('\n').filter((path) => /\.(ts|py|md|sh|svg|json|yml|toml)$/.test(path));
  const found = paths
    .filter((path) => !/^(package-lock\.json|test\/words\.test\.ts)$|\/golden\/|testdata\//.test(path))
    .flatMap((path) => findWords(path));
  assert.equal(found.length, 0, `\n  ${found.join('\n  ')}\n`);
});

function findWords(path: string): string[] {
  let text: string;
  try {
    text = readFileSync(join(root, path), 'utf8');
  } catch {
    return []; // removed, but not yet in the index
  }
  return text.split('\n').flatMap((line, index) => {
    if (allowed.test(line)) return [];
    const words = line.replace(/([a-z])([A-Z])/g, '$1 $2').replace(/_/g, ' ');
    return refused.flatMap(([word, instead]) => {
      const match = word.exec(words);
      return match ? [`${path}:${index + 1}: "${match[0]}"; write: ${instead}`] : [];
    });
  });
}
