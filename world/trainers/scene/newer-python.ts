// Python 3.12 or later, which some trainers need and Debian 12 does not have as python3.

import { execFileSync } from 'node:child_process';
import { globSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

export function findNewerPython(): string | undefined {
  const installed = globSync(join(homedir(), '.pyenv/versions/3.1[23].*/bin/python3')).sort();
  const candidates = ['python3.12', 'python3.13', 'python3', ...installed];
  return candidates.find(isNewer);
}

function isNewer(python: string): boolean {
  try {
    execFileSync(python, ['-c', 'import sys; sys.exit(sys.version_info < (3, 12))'], { stdio: 'ignore' });
    return true;
  } catch {
    return false; // It is not there, or it is older.
  }
}
