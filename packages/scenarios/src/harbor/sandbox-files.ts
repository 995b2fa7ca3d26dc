// Puts folders of a Harbor task into a sandbox: through the executor, without any program of the sandbox, because the agent may have replaced
// those. Also how its scripts are started.

import { readdir, readFile, stat } from 'node:fs/promises';
import { join, relative } from 'node:path';
import type { Sandbox } from '@millrace/sandbox';

/** Links are written as the files that they point to. Returns how many files and folders there are. */
export async function writeFolder(sandbox: Sandbox, from: string, to: string, signal: AbortSignal): Promise<number> {
  const entries = await readdir(from, { withFileTypes: true, recursive: true });
  let count = 0;
  for (const entry of entries) {
    const path = join(entry.parentPath, entry.name);
    const found = await stat(path).catch(() => undefined); // a link that points to nothing here
    if (found?.isDirectory() && !entry.isSymbolicLink() && (await readdir(path)).length > 0) count += 1;
    if (!found?.isFile()) continue;
    count += 1;
    await sandbox.writeFile(join(to, relative(from, path)), await readFile(path), { mode: modeOf(entry.name, found.mode), signal });
  }
  return count;
}

/** Scripts are made executable, as Harbor does. */
function modeOf(name: string, mode: number): number {
  return (mode | (name.endsWith('.sh') ? 0o755 : 0o644)) & 0o777;
}

/** The command that runs a script with the interpreter of its first line, or bash. */
export async function renderScriptCommand(hostPath: string, path: string): Promise<string[]> {
  const text = await readFile(hostPath, 'utf8').catch(() => ''); // it is in the image only
  const [, line] = /^#!(.+)/.exec(text) ?? [];
  const [program = '', ...words] = (line ?? '').trim().split(/[ \t]+/);
  return program === '' ? ['/bin/bash', path] : [program, ...(words.length === 0 ? [] : [words.join(' ')]), path];
}
