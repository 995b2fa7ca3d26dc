// How much disk a tree takes, links not followed.

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

export async function measureTree(path: string): Promise<number> {
  const { stdout } = await promisify(execFile)('du', ['--summarize', '--block-size=1', '--', path]);
  return Number(stdout.split('\t')[0]);
}
