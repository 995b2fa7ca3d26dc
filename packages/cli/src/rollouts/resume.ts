// What is left of a submission that could not be finished: a file with the missing rollouts and their ids. Submitting the file
// again continues where it stopped, because a repeated id changes nothing.

import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { SubmissionInput } from '@millrace/protocol';
import { toCount } from '../terminal/text.ts';

/** In the current folder, or in the temporary one where that cannot be written. Returns its path. */
export async function writeResumeFile(submissions: readonly SubmissionInput[]): Promise<string> {
  const name = `millrace-resume-${new Date().toISOString().replace(/\D/g, '').slice(0, 14)}-${process.pid}.jsonl`;
  const text = submissions.map((one) => `${JSON.stringify(one)}\n`).join('');
  try {
    await writeFile(name, text, { flag: 'wx' });
    return name;
  } catch {
    const path = join(tmpdir(), name); // a read-only folder must not cost the ids
    await writeFile(path, text);
    return path;
  }
}

const mostNamed = 5;

export function renderResume(
  ids: readonly string[],
  { file, again }: { readonly file: string; readonly again: readonly string[] },
): string {
  const more = ids.length > mostNamed ? `, and ${toCount(ids.length - mostNamed)} more` : '';
  const line = (...words: readonly string[]) => `  ${['millrace', ...words].map(quote).join(' ')}`;
  return [
    `${toCount(ids.length)} ${ids.length === 1 ? 'rollout has' : 'rollouts have'} not been written: ${ids.slice(0, mostNamed).join(', ')}${more}`,
    `${ids.length === 1 ? 'It is' : 'They are'} in ${file}. What was submitted goes on. To continue, without running anything twice:`,
    line('submit', file, ...again),
    'To cancel instead:',
    line('cancel', '--file', file, ...again.filter((word) => word !== '--trajectories')),
    '',
  ].join('\n');
}

function quote(word: string): string {
  return /^[\w./:=@%+-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
