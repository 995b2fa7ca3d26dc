// Whether this user can really run Apptainer sandboxes on this machine: by starting one, from an image that borrows /usr. Where it
// cannot, what Apptainer said and the line to try.

import { mkdir, mkdtemp, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ProgramFailed, runProgram } from '../../base/run-program.ts';
import { findApptainer } from '../images/apptainer-program.ts';
import { removeTree } from '../run-folder/run-folder.ts';
import { isolation, noNetwork } from './arguments.ts';

export type ApptainerProbe =
  | { readonly ok: true; readonly version: string; readonly path: string }
  | { readonly ok: false; readonly version?: string; readonly reason: string; readonly remedy: string };

const trialTimeoutMs = 20_000;

export async function probeApptainer(path: string | undefined = findApptainer()): Promise<ApptainerProbe> {
  const remedy = 'sudo scripts/install-apptainer.sh, or https://apptainer.org/docs/admin/main/installation.html';
  if (path === undefined) return { ok: false, reason: 'neither apptainer nor singularity is in PATH', remedy };
  const said = await runProgram([path, '--version'], { timeoutMs: trialTimeoutMs }).catch((error: Error) => error);
  if (said instanceof Error) return { ok: false, reason: `${path} cannot be run: ${said.message}`, remedy };
  const version = said.trim();
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
    return { ok: false, version, reason, remedy: 'apptainer exec DIRECTORY true, with any unpacked image, shows it again' };
  } finally {
    await removeTree(folder);
  }
}

async function makeTrialImage(image: string): Promise<void> {
  for (const name of ['dev', 'etc', 'proc', 'tmp', 'usr']) await mkdir(join(image, name), { recursive: true });
  for (const name of ['bin', 'lib', 'lib64']) await symlink(`usr/${name}`, join(image, name));
}
