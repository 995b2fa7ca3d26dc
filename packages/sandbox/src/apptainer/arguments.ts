// The arguments of `apptainer exec` (or `singularity exec`), which define everything that exists inside an Apptainer sandbox: the image
// under a writable layer on the sandbox's own disk, none of the machine's users' files, no network, and the executor as process 1.

import type { ExecutorFiles } from '../executor/executor-files.ts';
import type { Granted } from '../grant.ts';
import type { ProcCover } from '../launch/proc-covers.ts';
import { executorArguments, executorFiles, executorFolder, executorProgram, harnessFolder, home, linkFolder } from '../layout.ts';
import type { FilterFiles } from '../syscalls/filter-files.ts';

/** The same for every sandbox of a driver. */
interface ApptainerHost {
  readonly executor: ExecutorFiles;
  readonly covers: readonly ProcCover[];
  /** The system calls that agents may not use, if this Apptainer can filter them. */
  readonly filters?: FilterFiles;
}

/** The first arguments of every command. */
export const isolation = [
  ...['--silent', '--nocolor', 'exec'],
  // Without Apptainer's init, the executor is process 1, which cannot be killed from inside.
  ...['--containall', '--cleanenv', '--no-home', '--no-privs', '--no-init'],
  // As root, the agent could change the kernel's settings in /sys and the machine's /etc/localtime.
  ...['--no-mount', 'sys,/etc/localtime', '--hostname', 'sandbox'],
];

export const noNetwork = ['--net', '--network', 'none'];

/** In-memory folders next to the disk in a sandbox's folder, so that the executor has space when the disk is full. */
export const tmpfsFolders = { own: 'own', shm: 'shm' } as const;

export function renderFilter(path: string): string[] {
  return ['--security', `seccomp:${path}`];
}

interface ApptainerChoice {
  /** A SIF file or an unpacked directory. */
  readonly image: string;
  readonly network: Granted['network'];
  readonly namespaces: Granted['namespaces'];
  /** The folder of a layer, stacked between the image and the files that the sandbox writes. */
  readonly layer?: string;
  /** The folder of a harness. */
  readonly harness?: string;
  /** Whether the complete root is already mounted in the sandbox's folder. */
  readonly hasRoot: boolean;
  /** False if this process cannot mount: then these folders are on the machine's disk, and /dev/shm is Apptainer's own. */
  readonly hasDisk: boolean;
}

export function renderApptainerArguments(host: ApptainerHost, folder: string, choice: ApptainerChoice): string[] {
  const { image, network, namespaces, layer, hasRoot, hasDisk } = choice;
  const binds = [
    ...host.covers.map(({ from, path }) => `${from}:${path}:ro`),
    `${host.executor.program}:${executorProgram}:ro`,
    `${host.executor.folder}:${executorFiles}:ro`,
    `${folder}/link:${linkFolder}:ro`,
    `${folder}/${tmpfsFolders.own}:${executorFolder}`,
    ...(hasDisk ? [`${folder}/${tmpfsFolders.shm}:/dev/shm`] : []),
    `${folder}/disk/home:${home}`,
    ...(choice.harness === undefined ? [] : [`${choice.harness}:${harnessFolder}:ro`]),
  ];
  return [
    ...isolation,
    ...(network === 'none' ? noNetwork : []),
    ...(host.filters === undefined ? [] : renderFilter(host.filters[namespaces])),
    ...(hasRoot ? ['--writable'] : [...(layer === undefined ? [] : ['--overlay', `${layer}/root:ro`]), '--overlay', `${folder}/disk/root`]),
    ...['--workdir', `${folder}/disk/scratch`, '--pwd', home],
    ...binds.flatMap((bind) => ['--bind', bind]),
    ...[hasRoot ? `${folder}/root` : image, executorProgram, ...executorArguments],
  ];
}
