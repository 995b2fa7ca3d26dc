// Checks whether this machine can run bubblewrap sandboxes. If not, gives the reason and the command that fixes it.

import { readFile } from 'node:fs/promises';
import { type ProgramFailed, runProgram } from '@millrace/base/run-program';
import { trialWalls } from './arguments.ts';

type BubblewrapProbe =
  | { readonly ok: true; readonly version: string }
  | { readonly ok: false; readonly reason: string; readonly remedy: string };

/** Kernel settings that can forbid user namespaces, each with the value that does and the value that allows them. */
const settings = [
  { setting: 'kernel.unprivileged_userns_clone', forbids: '0', allows: '1' },
  { setting: 'user.max_user_namespaces', forbids: '0', allows: '15000' },
  { setting: 'kernel.apparmor_restrict_unprivileged_userns', forbids: '1', allows: '0' },
] as const;

const trial = [...trialWalls, 'true'];

interface BubblewrapProbeOptions {
  readonly bwrapPath?: string;
  /** Returns the value of a kernel setting, or undefined if the kernel does not have it. */
  readonly readSetting?: (setting: string) => Promise<string | undefined>;
}

export async function probeBubblewrap(options: BubblewrapProbeOptions = {}): Promise<BubblewrapProbe> {
  const { bwrapPath = 'bwrap', readSetting = readKernelSetting } = options;
  const version = await runProgram([bwrapPath, '--version']).catch((error: Error) => error);
  if (version instanceof Error) {
    return { ok: false, reason: `bubblewrap cannot be run: ${version.message}`, remedy: 'sudo apt-get install -y bubblewrap' };
  }
  const attempt = await runProgram([bwrapPath, ...trial]).catch((error: ProgramFailed) => error);
  if (!(attempt instanceof Error)) return { ok: true, version: version.trim().replace(/^bubblewrap /, '') };
  for (const { setting, forbids, allows } of settings) {
    if ((await readSetting(setting)) !== forbids) continue;
    return { ok: false, reason: `${setting} is ${forbids}: user namespaces are forbidden`, remedy: `sudo sysctl -w ${setting}=${allows}` };
  }
  const seen = attempt.stderr || attempt.message;
  return { ok: false, reason: `bubblewrap cannot create a sandbox: ${seen}`, remedy: `${bwrapPath} ${trial.join(' ')}` };
}

async function readKernelSetting(setting: string): Promise<string | undefined> {
  return readFile(`/proc/sys/${setting.replaceAll('.', '/')}`, 'utf8').then(
    (text) => text.trim(),
    () => undefined,
  );
}
