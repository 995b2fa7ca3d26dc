// Which Python runs a scenario: the virtual environment next to its file, otherwise the one on the path.

import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** `MILLRACE_PYTHON` names another. */
export function findPython(file: string, env: Readonly<Record<string, string | undefined>> = process.env): string {
  if (env.MILLRACE_PYTHON !== undefined && env.MILLRACE_PYTHON !== '') return env.MILLRACE_PYTHON;
  const own = join(dirname(file), '.venv/bin/python');
  return existsSync(own) ? own : 'python3';
}
