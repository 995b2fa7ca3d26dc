// How much disk a tree takes, links not followed.

import { runProgram } from '../../base/run-program.ts';

export async function measureTree(path: string): Promise<number> {
  const stdout = await runProgram(['du', '--summarize', '--block-size=1', '--', path]);
  return Number(stdout.split('\t')[0]);
}
