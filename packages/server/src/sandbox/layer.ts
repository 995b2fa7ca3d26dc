// Layers: the files that a preparation has left in a sandbox, frozen, for other sandboxes to start on top of. Files only: what the
// preparation has started is killed first.

import { execFile } from 'node:child_process';
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { RolloutError } from '@millrace/protocol';
import { type DiskAccess, renderEnterDisk } from './disk.ts';
import { type GrantedSpec, openSandbox, type SandboxLauncher } from './open-sandbox.ts';
import type { LayerRequest, Sandbox, SandboxSpec } from './sandbox.ts';

const killTimeoutMs = 10_000;

/** `home` is /workspace; `root` is what Apptainer stacks on the image. */
const copy = `set -e; cp -a "$1/disk/home" "$2/home"
if [ -d "$1/disk/root/upper" ]; then mkdir "$2/root"; cp -a "$1/disk/root/upper" "$2/root/upper"; fi`;

export async function freezeLayer(
  launcher: SandboxLauncher,
  spec: GrantedSpec,
  request: LayerRequest & { access: DiskAccess },
): Promise<void> {
  const { folder, prepare, signal, access } = request;
  await using sandbox = await openSandbox(launcher, { ...spec, isToFreeze: true }, signal);
  await prepare(sandbox);
  await killPrograms(sandbox, signal);
  signal?.throwIfAborted();
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const from = join(launcher.runDir, sandbox.id);
  const [program = '', ...args] = renderEnterDisk(access, await readHolder(from), ['/bin/sh', '-c', copy, 'sh', from, folder]);
  try {
    await promisify(execFile)(program, args, signal === undefined ? {} : { signal });
  } catch (error) {
    signal?.throwIfAborted();
    if (sandbox.died.aborted) throw sandbox.died.reason;
    throw new RolloutError('sandbox-start-failed', `what ${sandbox.id} has prepared could not be kept: ${String(error)}`, { cause: error });
  }
}

/** A sandbox without the files that it was to start with would be another one. */
export function refuseLayer(spec: SandboxSpec, access: DiskAccess | undefined): void {
  if (spec.layer === undefined || access !== undefined) return;
  throw new RolloutError('sandbox-start-failed', `this machine gives no mounts, so that nothing can start on top of ${spec.layer}`);
}

/** All but the executor, which is process 1; nothing writes to the files any more. */
async function killPrograms(sandbox: Sandbox, signal: AbortSignal | undefined): Promise<void> {
  await sandbox.exec(['bash', '-c', 'kill -9 -1'], { timeoutMs: killTimeoutMs, ...(signal === undefined ? {} : { signal }) });
}

/** The parent of the first process inside: it lives where the sandbox's disk is mounted. */
async function readHolder(folder: string): Promise<number> {
  const [pid] = (await readFile(join(folder, 'process'), 'utf8')).split(' ');
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/^PPid:\t(\d+)$/m.exec(status)?.[1]);
}
