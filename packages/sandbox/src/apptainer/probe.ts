// Checks whether this user can run Apptainer sandboxes on this machine, by starting a container from a minimal image with the machine's
// /usr. If not, gives Apptainer's error and the command to try.

import { mkdir, mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ProgramFailed, runProgram } from '@millrace/base/run-program';
import { findApptainer } from '../images/apptainer-program.ts';
import { removeTree } from '../run-folder/remove-tree.ts';
import { isolation, noNetwork } from './arguments.ts';
import { makeTrialImage } from './trial-image.ts';

type ApptainerProbe =
  | { readonly ok: true; readonly version: string; readonly path: string }
  | { readonly ok: false; readonly version?: string; readonly reason: string; readonly remedy: string };

const trialTimeoutMs = 20_000;

export async function probeApptainer(path: string | undefined = findApptainer()): Promise<ApptainerProbe> {
  const remedy = 'sudo scripts/install-apptainer.sh, or https://apptainer.org/docs/admin/main/installation.html';
  if (path === undefined) return { ok: false, reason: 'neither apptainer nor singularity is in PATH', remedy };
  const reply = await runProgram([path, '--version'], { timeoutMs: trialTimeoutMs }).catch((error: Error) => error);
  if (reply instanceof Error) {
    const isUnknown = /unknown userid/.test(reply.message);
    const fix = isUnknown ? `add user ${process.getuid?.()} to /etc/passwd: Apptainer runs only for users that have an account` : remedy;
    return { ok: false, reason: `${path} cannot be run: ${reply.message}`, remedy: fix };
  }
  const version = reply.trim();
  const folder = await mkdtemp(join(tmpdir(), 'probe-'));
  try {
    await makeTrialImage(join(folder, 'image'));
    await mkdir(join(folder, 'overlay'));
    const command = [
      path,
      ...isolation,
      ...noNetwork,
      '--overlay',
      join(folder, 'overlay'),
      '--bind',
      '/usr:/usr:ro',
      join(folder, 'image'),
      '/usr/bin/true',
    ];
    const seen = await runProgram(command, { timeoutMs: trialTimeoutMs }).catch((error: ProgramFailed) => error);
    if (!(seen instanceof Error)) return { ok: true, version, path };
    const reason = `${version} cannot start a container as this user: ${seen.stderr || seen.message}`;
    return { ok: false, version, reason, remedy: 'reproduce it with: apptainer exec DIRECTORY true, for any unpacked image' };
  } finally {
    await removeTree(folder);
  }
}
