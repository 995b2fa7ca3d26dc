// Python programs of the recipes, with the sources of the client and the trainers' package on their path.

import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { makeTempFolder } from '@millrace/testkit/plain';

const packages = ['trainers-python/src', 'client-python/src'].map((path) => join(import.meta.dirname, '../../../packages', path));

export function skipWithoutPython(): string | undefined {
  const { status } = spawnSync('python3', ['-c', 'import sys, IPython; sys.exit(sys.version_info < (3, 9))']);
  return status === 0 ? undefined : 'Python 3.9 or later with IPython is not installed';
}

/** What it printed; it must succeed. It runs in a fresh folder. */
export async function runPython(args: readonly string[], url: string, more: Readonly<Record<string, string>> = {}): Promise<string> {
  await using folder = await makeTempFolder('recipe');
  const env = {
    ...process.env,
    PYTHONPATH: packages.join(':'),
    PYTHONDONTWRITEBYTECODE: '1',
    PYTHONIOENCODING: 'utf-8',
    MILLRACE_URL: url,
    ...more,
  };
  const child = spawn('python3', args, { cwd: folder.path, env, stdio: ['ignore', 'pipe', 'pipe'] });
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  assert.equal(code, 0, `${stdout}${stderr}`);
  return stdout;
}

/** A server; `line` is the first that it printed. */
export async function openProgram([program = '', ...args]: readonly string[]): Promise<AsyncDisposable & { readonly line: string }> {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = await once(createInterface(child.stdout), 'line');
  return {
    line: String(line),
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
      await once(child, 'exit');
    },
  };
}
