// The arguments of bwrap, which define everything that exists inside a bubblewrap sandbox: the machine's programs, read-only; none of its
// users' files; no network; and the sandbox's own writable folders.

import { lstatSync, readdirSync, readlinkSync } from 'node:fs';
import type { ExecutorFiles } from '../executor/executor-files.ts';
import type { Granted } from '../grant.ts';
import type { ProcCover } from '../launch/proc-covers.ts';
import {
  executorArguments,
  executorFiles,
  executorFolder,
  executorFolderMiB,
  executorProgram,
  harnessFolder,
  home,
  linkFolder,
} from '../layout.ts';
import { filterDescriptor } from '../limits/rlimits.ts';

/** The same for every sandbox of a driver. */
interface BubblewrapHost {
  readonly executor: ExecutorFiles;
  /** From `openHostEtc`. */
  readonly etc: string;
  /** Arguments for /usr, from `readHostArguments`. */
  readonly system: readonly string[];
  readonly covers: readonly ProcCover[];
  /** Whether this bwrap can forbid namespaces inside, from version 0.8. */
  readonly forbidsNamespaces: boolean;
}

interface BubblewrapChoice extends Granted {
  /** Whether the disk with /workspace is already mounted in the folder. */
  readonly hasDisk: boolean;
  /** Whether a filter of system calls is passed on `filterDescriptor`. */
  readonly hasFilter: boolean;
  /** The folder of a harness. */
  readonly harness?: string;
}

export function renderArguments(host: BubblewrapHost, folder: string, choice: BubblewrapChoice): string[] {
  const { limits, network, namespaces, hasDisk, hasFilter } = choice;
  const tmpMiB = Math.floor(limits.memoryMiB / 4);
  return [
    ...newNamespaces,
    ...['--cap-drop', 'ALL', '--hostname', 'sandbox'],
    // The filter refuses user namespaces too; this also holds on machines whose architecture has no filter.
    ...(host.forbidsNamespaces && namespaces === 'none' ? ['--disable-userns'] : []),
    ...(hasFilter ? ['--seccomp', String(filterDescriptor)] : []),
    // As process 1, the executor cannot be killed from inside.
    ...['--die-with-parent', '--new-session', '--as-pid-1', '--info-fd', '3'],
    ...[...host.system, '--ro-bind', host.etc, '/etc'],
    ...(network === 'host' ? ['--share-net', '--ro-bind-try', '/etc/resolv.conf', '/etc/resolv.conf'] : []),
    ...['--proc', '/proc', '--dev', '/dev'],
    ...host.covers.flatMap(({ from, path }) => ['--ro-bind', from, path]),
    ...renderTmpfs('/dev/shm', tmpMiB),
    ...renderTmpfs('/tmp', tmpMiB),
    ...renderTmpfs(executorFolder, executorFolderMiB),
    ...(hasDisk ? ['--bind', `${folder}/disk/home`, home] : renderTmpfs(home, limits.diskMiB)),
    ...['--ro-bind', host.executor.program, executorProgram, '--ro-bind', host.executor.folder, executorFiles],
    ...['--ro-bind', `${folder}/link`, linkFolder],
    ...(choice.harness === undefined ? [] : ['--ro-bind', choice.harness, harnessFolder]),
    // Last: mounts below these folders keep their own flags.
    ...['--remount-ro', '/dev', '--remount-ro', '/', '--chdir', home],
    ...['--', executorProgram, ...executorArguments],
  ];
}

const newNamespaces = ['--unshare-all', '--unshare-user', '--uid', '1000', '--gid', '1000'];

/** A sandbox in which the whole host can be read, to see whether one can be started at all. */
export const trialWalls = [...newNamespaces, '--ro-bind', '/', '/', '--proc', '/proc', '--dev', '/dev'];

/** Fails unless this user can start a sandbox, read the executor's files and run its program. */
export function renderTrial({ program, folder }: ExecutorFiles): string[] {
  return [...trialWalls, '--ro-bind', folder, '/tmp', 'test', '-r', '/tmp/ipython_host.py', '-a', '-x', program];
}

function renderTmpfs(path: string, sizeMiB: number): string[] {
  return ['--perms', '0755', '--size', String(sizeMiB * 2 ** 20), '--tmpfs', path];
}

export function readHostArguments(): string[] {
  const roots = readdirSync('/').filter((name) => /^(bin|sbin|lib|lib32|lib64|libx32)$/.test(name));
  return ['--ro-bind', '/usr', '/usr', ...roots.flatMap((name) => renderRoot(`/${name}`))];
}

function renderRoot(path: string): string[] {
  return lstatSync(path).isSymbolicLink() ? ['--symlink', readlinkSync(path), path] : ['--ro-bind', path, path];
}
