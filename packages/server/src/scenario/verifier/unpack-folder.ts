// Puts the folder that `readFolder` packed in the agent's sandbox into a sandbox of the verifier.

import { definedOf, RolloutError } from '@millrace/protocol';
import type { ExecResult, Sandbox } from '../../sandbox/sandbox.ts';

const workspace = '/workspace';
const timeoutMs = 60_000;

interface UnpackOptions {
  readonly signal?: AbortSignal;
}

/**
 * Unpacks an archive of `readFolder` into /workspace of a fresh sandbox. Throws `evaluate-failed` if its image has no tar program, and
 * `policy-failed` if the files do not fit into the sandbox.
 */
export async function unpackFolder(sandbox: Sandbox, archive: Buffer, options: UnpackOptions = {}): Promise<void> {
  const { exitCode, stderr } = await runTar(sandbox, archive, options);
  if (exitCode === 0) return;
  if (exitCode === 127) throw new RolloutError('evaluate-failed', 'there is no tar program in the image: add tar to it');
  const output = stderr.subarray(-2000).toString('utf8').trim();
  throw new RolloutError('policy-failed', `the agent's files could not be unpacked: tar ended with ${exitCode ?? 'a signal'}: ${output}`);
}

export function runTar(sandbox: Sandbox, archive: Buffer, { signal }: UnpackOptions): Promise<ExecResult> {
  const unpack = ['tar', '--extract', '--file=-', '--directory', workspace, '--no-same-owner'];
  return sandbox.exec(unpack, definedOf({ stdin: archive, timeoutMs, signal }));
}
