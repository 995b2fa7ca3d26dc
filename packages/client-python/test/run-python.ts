// Runs the machine's Python in the folder of these tests, with the client on its path.

import { spawn, spawnSync } from 'node:child_process';
import { text } from 'node:stream/consumers';

const probe = spawnSync('python3', ['-c', 'import sys; print("%d.%d" % sys.version_info[:2], sys.version_info >= (3, 9))'], {
  encoding: 'utf8',
});

export const python: { readonly ok: true } | { readonly ok: false; readonly reason: string } =
  probe.status === 0 && probe.stdout.includes('True')
    ? { ok: true }
    : { ok: false, reason: `Python 3.9 or later is required; found ${probe.stdout?.trim() || 'none'}` };

export interface PythonOptions {
  readonly input?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

export async function runPython(args: readonly string[], options: PythonOptions = {}): Promise<{ code: number | null; output: string }> {
  const env = { ...process.env, PYTHONPATH: '../src', PYTHONDONTWRITEBYTECODE: '1', PYTHONIOENCODING: 'utf-8', ...options.env };
  const child = spawn('python3', args, { cwd: import.meta.dirname, env, ...(options.signal ? { signal: options.signal } : {}) });
  child.stdin.end(options.input ?? '');
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
  return { code: await ended, output: `${stdout}${stderr}` };
}
