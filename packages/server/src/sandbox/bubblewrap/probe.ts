// Whether this machine can run bubblewrap sandboxes; where it cannot, the reason and the one line that mends it.

import { readFile } from 'node:fs/promises';
import { type ProgramFailed, runProgram } from '../../base/run-program.ts';

export type BubblewrapProbe =
  | { readonly ok: true; readonly version: string }
  | { readonly ok: false; readonly reason: string; readonly remedy: string };

/** Settings of the kernel that forbid user namespaces, each with the value that does. */
const locks = [
  { setting: 'kernel.unprivileged_userns_clone', forbids: '0', mend: '1' },
  { setting: 'user.max_user_namespaces', forbids: '0', mend: '15000' },
  { setting: 'kernel.apparmor_restrict_unprivileged_userns', forbids: '1', mend: '0' },
] as const;

const trial = [
  '--unshare-all',
  '--unshare-user',
  '--uid',
  '1000',
  '--gid',
  '1000',
  '--ro-bind',
  '/',
  '/',
  '--proc',
  '/proc',
  '--dev',
  '/dev',
  'true',
];

export interface ProbeOptions {
  readonly bwrapPath?: string;
  /** Answers a kernel setting's value, or nothing where the kernel has no such setting. */
  readonly readSetting?: (setting: string) => Promise<string | undefined>;
}

export async function probeBubblewrap(options: ProbeOptions = {}): Promise<BubblewrapProbe> {
  const { bwrapPath = 'bwrap', readSetting = readKernelSetting } = options;
  const version = await runProgram([bwrapPath, '--version']).catch((error: Error) => error);
  if (version instanceof Error) {
    return { ok: false, reason: `bubblewrap cannot be run: ${version.message}`, remedy: 'sudo apt-get install -y bubblewrap' };
  }
  const attempt = await runProgram([bwrapPath, ...trial]).catch((error: ProgramFailed) => error);
  if (!(attempt instanceof Error)) return { ok: true, version: version.trim().replace(/^bubblewrap /, '') };
  for (const { setting, forbids, mend } of locks) {
    if ((await readSetting(setting)) !== forbids) continue;
    return { ok: false, reason: `${setting} is ${forbids}: user namespaces are forbidden`, remedy: `sudo sysctl -w ${setting}=${mend}` };
  }
  const seen = attempt.stderr || attempt.message;
  return { ok: false, reason: `bubblewrap cannot make a sandbox: ${seen}`, remedy: `${bwrapPath} ${trial.join(' ')}` };
}

async function readKernelSetting(setting: string): Promise<string | undefined> {
  return readFile(`/proc/sys/${setting.replaceAll('.', '/')}`, 'utf8').then(
    (text) => text.trim(),
    () => undefined,
  );
}
