// How much disk a folder uses, without following links.

import { runProgram } from '@millrace/base/run-program';

export async function measureTree(path: string): Promise<number> {
  const stdout = await runProgram(['du', '--summarize', '--block-size=1', '--', path]);
  return Number(stdout.split('\t')[0]);
}
