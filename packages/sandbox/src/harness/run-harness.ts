// One run of a harness in a sandbox that has it mounted: its files are written, it is started in /workspace, and its end is read. How a
// harness ends says nothing about success; what it left in the sandbox does.

import { definedOf, RolloutError } from '@millrace/protocol';
import type { ExecResult, Sandbox } from '../sandbox.ts';
import { type Harness, type HarnessTask, renderHarness } from './harness.ts';

interface HarnessRunOptions extends HarnessTask {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

interface HarnessEnd {
  /** As the harness exited by itself; `timeout` if it was killed when its time was up. */
  readonly kind: 'exited' | 'killed' | 'timeout';
  readonly exitCode?: number;
  readonly stdout: string;
  readonly stderr: string;
}

const capBytes = 1 << 20;

export async function runHarness(sandbox: Sandbox, spec: Harness, options: HarnessRunOptions): Promise<HarnessEnd> {
  const { timeoutMs, signal } = options;
  const { argv, stdin, env, files } = renderHarness(spec, options);
  for (const [path, text] of Object.entries(files)) await sandbox.writeFile(path, text, definedOf({ mode: 0o600, signal }));
  const end = await sandbox.exec(argv, definedOf({ stdin, env, timeoutMs, capBytes, judgesKills: true, signal }));
  if (spec.runtime === 'none' && isMissing(end)) throw toLibraryError(spec, end);
  const kind: HarnessEnd['kind'] = end.timedOut ? 'timeout' : end.exitCode === undefined ? 'killed' : 'exited';
  return definedOf({ kind, exitCode: end.exitCode, stdout: end.stdout.toString('utf8'), stderr: end.stderr.toString('utf8') });
}

/** The kernel says of a program whose loader is missing what it says of a missing program. */
function isMissing({ exitCode, stdout, stderr }: ExecResult): boolean {
  return exitCode === 127 && stdout.length === 0 && /\bENOENT\b/.test(stderr.toString('utf8'));
}

function toLibraryError({ name, package: source }: Harness, { stderr }: ExecResult): RolloutError {
  const why = `${name} (${source}) is linked with a C library that this image does not have, as in Alpine (${stderr.toString('utf8').trim()})`;
  return new RolloutError(
    'sandbox-refused',
    `${why}: use an image with glibc, or a harness that brings its libraries with it (docs/harnesses.md)`,
  );
}
