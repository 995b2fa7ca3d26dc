// What a bubblewrap sandbox can see, as bwrap's arguments: the machine's programs read-only, nothing of its users, no network, and
// three places of its own. What is not listed here does not exist inside.

import { lstatSync, readdirSync, readlinkSync } from 'node:fs';
import type { ProcCover } from '../launch/proc-covers.ts';
import { executorArguments, home, linkFolder, ownFolder, ownMiB, program, programFiles } from '../layout.ts';
import type { Granted } from '../limits/limits.ts';

/** What is the same for every sandbox of a driver. */
export interface SandboxHost {
  /** Node, in a copy that can be run but not read: what the agent runs cannot trace the executor or look into it. */
  readonly nodePath: string;
  /** The executor's files, and a folder with passwd, group and hosts. */
  readonly executorFiles: string;
  readonly etcFiles: string;
  /** Arguments for /usr and /etc, from `readHostArguments`. */
  readonly system: readonly string[];
  readonly covers: readonly ProcCover[];
}

/** `hasDisk`: what is to be /workspace is mounted below the folder already. */
export function renderArguments(
  host: SandboxHost,
  folder: string,
  { limits, network, hasDisk }: Granted & { readonly hasDisk: boolean },
): string[] {
  const tmpMiB = Math.floor(limits.memoryMiB / 4);
  return [
    ...['--unshare-all', '--unshare-user', '--uid', '1000', '--gid', '1000', '--cap-drop', 'ALL', '--hostname', 'sandbox'],
    // As process 1, the executor cannot be killed from inside.
    ...['--die-with-parent', '--new-session', '--as-pid-1', '--info-fd', '3'],
    ...(network === 'host' ? ['--share-net', '--ro-bind-try', '/etc/resolv.conf', '/etc/resolv.conf'] : []),
    ...host.system,
    ...['passwd', 'group', 'hosts'].flatMap((name) => ['--ro-bind', `${host.etcFiles}/${name}`, `/etc/${name}`]),
    ...['--proc', '/proc', '--dev', '/dev'],
    ...host.covers.flatMap(({ from, path }) => ['--ro-bind', from, path]),
    ...renderTmpfs('/dev/shm', tmpMiB),
    ...renderTmpfs('/tmp', tmpMiB),
    ...renderTmpfs(ownFolder, ownMiB),
    ...(hasDisk ? ['--bind', `${folder}/disk/home`, home] : renderTmpfs(home, limits.diskMiB)),
    ...['--ro-bind', host.nodePath, program, '--ro-bind', host.executorFiles, programFiles],
    ...['--ro-bind', `${folder}/link`, linkFolder],
    // Last: what is mounted on them stays as it is.
    ...['--remount-ro', '/dev', '--remount-ro', '/', '--chdir', home],
    ...['--', program, ...executorArguments],
  ];
}

function renderTmpfs(path: string, sizeMiB: number): string[] {
  return ['--perms', '0755', '--size', String(sizeMiB * 2 ** 20), '--tmpfs', path];
}

/** Of /etc, only what programs need to run: no accounts, no keys, no configuration that could hold a password. */
const etcNames =
  /^(alternatives|ca-certificates|debian_version|fonts|java-.*|ld\.so\.(cache|conf|conf\.d)|localtime|magic|mime\.types|nsswitch\.conf|os-release|perl|protocols|python.*|services|terminfo|timezone)$/;

export function readHostArguments(): string[] {
  const roots = readdirSync('/').filter((name) => /^(bin|sbin|lib|lib32|lib64|libx32)$/.test(name));
  return [
    ...['--ro-bind', '/usr', '/usr'],
    ...roots.flatMap((name) => renderRoot(`/${name}`)),
    ...readdirSync('/etc')
      .filter((name) => etcNames.test(name))
      .flatMap((name) => ['--ro-bind', `/etc/${name}`, `/etc/${name}`]),
    ...['--ro-bind-try', '/etc/ssl/certs', '/etc/ssl/certs', '--ro-bind-try', '/etc/ssl/openssl.cnf', '/etc/ssl/openssl.cnf'],
  ];
}

function renderRoot(path: string): string[] {
  return lstatSync(path).isSymbolicLink() ? ['--symlink', readlinkSync(path), path] : ['--ro-bind', path, path];
}
