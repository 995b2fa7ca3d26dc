// Layers: the files that a preparation left in a sandbox, frozen so that other sandboxes can start on top of them. A layer has files only:
// processes that the preparation started are killed first.

import { mkdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { runProgram } from '@millrace/base/run-program';
import { definedOf, messageOf, RolloutError } from '@millrace/protocol';
import { type DiskAccess, renderEnterDisk } from '../launch/disk.ts';
import { type GrantedSpec, openSandbox, type SandboxLauncher } from '../launch/open-sandbox.ts';
import type { LayerRequest, Sandbox, SandboxSpec } from '../sandbox.ts';

const killTimeoutMs = 10_000;

interface FreezeOptions extends LayerRequest {
  readonly access: DiskAccess;
  /** Folders of the sandbox's disk to keep: `home` is /workspace, `root/upper` the changes to the image. */
  readonly parts: readonly string[];
}

export async function freezeLayer(launcher: SandboxLauncher, spec: GrantedSpec, options: FreezeOptions): Promise<void> {
  const { folder, prepare, signal, access, parts } = options;
  await using sandbox = await openSandbox(launcher, { ...spec, isToFreeze: true }, definedOf({ signal }));
  await prepare(sandbox);
  await killPrograms(sandbox, signal);
  const holder = await readHolder(join(launcher.runDir, sandbox.id));
  const from = join(launcher.agent?.runDir ?? launcher.runDir, sandbox.id);
  for (const part of parts) {
    await mkdir(dirname(join(folder, part)), { recursive: true, mode: 0o700 });
    const copy = ['cp', '--archive', '--', join(from, 'disk', part), join(folder, part)];
    await runProgram(renderEnterDisk(access, holder, copy), { signal }).catch((error) => {
      signal?.throwIfAborted();
      if (sandbox.died.aborted) throw sandbox.died.reason;
      throw new RolloutError('sandbox-start-failed', `the files that ${sandbox.id} prepared could not be copied: ${messageOf(error)}`);
    });
    if (sandbox.died.aborted) throw sandbox.died.reason;
  }
}

/** Without mounts the sandbox would start without the files of its layer. */
export function refuseLayer(spec: SandboxSpec, access: DiskAccess | undefined): void {
  if (spec.layer === undefined || access !== undefined) return;
  throw new RolloutError('sandbox-start-failed', `this process cannot mount file systems, so no sandbox can start on top of ${spec.layer}`);
}

/** Kills every process but the executor, which is process 1, so that nothing writes to the files any more. */
async function killPrograms(sandbox: Sandbox, signal: AbortSignal | undefined): Promise<void> {
  await sandbox.exec(['bash', '--norc', '-p', '-c', 'kill -9 -1'], definedOf({ timeoutMs: killTimeoutMs, signal }));
}

/** The parent of the first process inside. It is in the namespace in which the sandbox's disk is mounted. */
async function readHolder(folder: string): Promise<number> {
  const [pid] = (await readFile(join(folder, 'process'), 'utf8')).split(' ');
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/^PPid:\t(\d+)$/m.exec(status)?.[1]);
}
