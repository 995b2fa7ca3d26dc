// The filter of system calls for Apptainer sandboxes, tried once with the installed Apptainer: some are built without seccomp.

import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Log } from '@millrace/base/log';
import { runProgram } from '@millrace/base/run-program';
import { removeTree } from '../run-folder/remove-tree.ts';
import { type FilterFiles, writeProfiles } from '../syscalls/filter-files.ts';
import { isolation, renderFilter } from './arguments.ts';
import { makeTrialImage } from './trial-image.ts';

const trialTimeoutMs = 20_000;

interface FilterOptions {
  readonly apptainerPath: string;
  readonly log: Log;
  readonly isMemoryBounded: boolean;
}

/** Undefined, with a warning, if this Apptainer cannot apply the profiles. */
export async function writeSyscallFilter(runDir: string, options: FilterOptions): Promise<FilterFiles | undefined> {
  const { apptainerPath, log } = options;
  const files = await writeProfiles(runDir, options);
  if (await canFilter(apptainerPath, files.none)) return files;
  const message = `${apptainerPath} cannot filter system calls: agents can use all of them, and can create user namespaces`;
  log.warn('system-calls-unfiltered', { message });
  return undefined;
}

async function canFilter(apptainerPath: string, path: string): Promise<boolean> {
  const trial = await mkdtemp(join(tmpdir(), 'filter-'));
  try {
    await makeTrialImage(trial);
    const find = ['/usr/bin/grep', '^Seccomp:', '/proc/self/status'];
    const command = [apptainerPath, ...isolation, ...renderFilter(path), '--bind', '/usr:/usr:ro', trial, ...find];
    const seen = await runProgram(command, { timeoutMs: trialTimeoutMs }).catch(() => ''); // it was built without seccomp
    return /^Seccomp:\s*2$/m.test(seen);
  } finally {
    await removeTree(trial);
  }
}
