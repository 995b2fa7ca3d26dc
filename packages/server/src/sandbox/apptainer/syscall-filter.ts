// The system calls that agents in Apptainer sandboxes may not use: those that create user namespaces and those that mount. In a namespace of
// its own, an agent of a root worker could otherwise mount the control groups that limit its sandbox, and change them.

import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Log } from '../../base/log.ts';
import { runProgram } from '../../base/run-program.ts';
import { makeOnce } from '../run-folder/make-once.ts';
import { removeTree } from '../run-folder/remove-tree.ts';
import { isolation, renderFilter } from './arguments.ts';
import { makeTrialImage } from './trial-image.ts';

const newUser = 0x10000000;
const withNewUser = [{ index: 0, value: newUser, valueTwo: newUser, op: 'SCMP_CMP_MASKED_EQ' }];

/** Of clone3, a filter cannot read the flags: an agent that calls it itself gets a user namespace, in which it cannot mount anything. */
const profile = {
  defaultAction: 'SCMP_ACT_ALLOW',
  archMap: [
    { architecture: 'SCMP_ARCH_X86_64', subArchitectures: ['SCMP_ARCH_X86', 'SCMP_ARCH_X32'] },
    { architecture: 'SCMP_ARCH_AARCH64', subArchitectures: ['SCMP_ARCH_ARM'] },
  ],
  syscalls: [
    { names: ['unshare', 'clone'], action: 'SCMP_ACT_ERRNO', args: withNewUser },
    {
      names: [
        'mount',
        'umount',
        'umount2',
        'pivot_root',
        'fsopen',
        'fsconfig',
        'fsmount',
        'fspick',
        'move_mount',
        'open_tree',
        'mount_setattr',
      ],
      action: 'SCMP_ACT_ERRNO',
    },
  ],
};

const trialTimeoutMs = 20_000;

interface FilterOptions {
  readonly apptainerPath: string;
  readonly log: Log;
}

/** The path of the profile; undefined, with a warning, if this Apptainer cannot apply it. */
export async function writeSyscallFilter(runDir: string, { apptainerPath, log }: FilterOptions): Promise<string | undefined> {
  const folder = await makeOnce(runDir, { kind: 'filter', content: profile }, (scratch) =>
    writeFile(join(scratch, fileName), JSON.stringify(profile)),
  );
  const path = join(folder, fileName);
  const trial = await mkdtemp(join(tmpdir(), 'filter-'));
  try {
    await makeTrialImage(trial);
    const find = ['/usr/bin/grep', '^Seccomp:', '/proc/self/status'];
    const command = [apptainerPath, ...isolation, ...renderFilter(path), '--bind', '/usr:/usr:ro', trial, ...find];
    const seen = await runProgram(command, { timeoutMs: trialTimeoutMs }).catch(() => ''); // it was built without seccomp
    if (/^Seccomp:\s*2$/m.test(seen)) return path;
    log.warn('namespaces-allowed', { message: `${apptainerPath} cannot filter system calls: agents can create user namespaces` });
    return undefined;
  } finally {
    await removeTree(trial);
  }
}

const fileName = 'seccomp.json';
