// One run of a harness in a sandbox that has it mounted: its files are written, it is started in /workspace, and its end is read. How a
// harness ends says nothing about success; what it left in the sandbox does.

import { definedOf } from '@millrace/protocol';
import type { Sandbox } from '../sandbox.ts';
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
  const kind: HarnessEnd['kind'] = end.timedOut ? 'timeout' : end.exitCode === undefined ? 'killed' : 'exited';
  return definedOf({ kind, exitCode: end.exitCode, stdout: end.stdout.toString('utf8'), stderr: end.stderr.toString('utf8') });
}
