// What an Apptainer sandbox can see, as arguments of `apptainer exec` (or `singularity exec`): the image under a writable layer on the
// sandbox's own disk, nothing of the machine's users, no network, and the executor as process 1.

import type { NodeLibraries } from '../launch/node-libraries.ts';
import type { ProcCover } from '../launch/proc-covers.ts';
import { executorArguments, home, libraryFolder, linkFolder, ownFolder, program, programFiles } from '../layout.ts';
import type { Granted } from '../limits/limits.ts';

/** What is the same for every sandbox of a driver. */
export interface ApptainerHost {
  readonly nodePath: string;
  readonly executorFiles: string;
  readonly libraries: NodeLibraries;
  /** None where the worker is not root: then the kernel refuses the agent, who is nobody to it. */
  readonly covers: readonly ProcCover[];
}

/** The beginning of every command line. */
export const isolation = [
  ...['--silent', '--nocolor', 'exec'],
  // Without its init, Apptainer makes the executor process 1, which cannot be killed from inside.
  ...['--containall', '--cleanenv', '--no-home', '--no-privs', '--no-init'],
  // The kernel's settings in /sys would be root's to change, and so would the machine's /etc/localtime.
  ...['--no-mount', 'sys,/etc/localtime', '--hostname', 'sandbox'],
];

export const noNetwork = ['--net', '--network', 'none'];

/** What a sandbox's folder has beside its disk, so that the executor has room when the disk is full. */
export const beside = { own: 'own', shm: 'shm' } as const;

export interface ApptainerChoice {
  /** A SIF file or an unpacked directory. */
  readonly image: string;
  readonly network: Granted['network'];
  /** The folder of a layer, below what the sandbox writes and above the image. */
  readonly layer?: string;
  /** The root is mounted below the folder already, with all that is to be in it. */
  readonly hasRoot: boolean;
  /** False where this machine gives no mounts: then these folders are on its disk, and /dev/shm is Apptainer's. */
  readonly hasDisk: boolean;
}

export function renderApptainerArguments(host: ApptainerHost, folder: string, choice: ApptainerChoice): string[] {
  const { image, network, layer, hasRoot, hasDisk } = choice;
  const binds = [
    ...host.covers.map(({ from, path }) => `${from}:${path}:ro`),
    `${host.nodePath}:${program}:ro`,
    `${host.executorFiles}:${programFiles}:ro`,
    `${host.libraries.folder}:${libraryFolder}:ro`,
    `${folder}/link:${linkFolder}:ro`,
    `${folder}/${beside.own}:${ownFolder}`,
    ...(hasDisk ? [`${folder}/${beside.shm}:/dev/shm`] : []),
    `${folder}/disk/home:${home}`,
  ];
  return [
    ...isolation,
    ...(network === 'none' ? noNetwork : []),
    ...(hasRoot ? ['--writable'] : [...(layer === undefined ? [] : ['--overlay', `${layer}/root:ro`]), '--overlay', `${folder}/disk/root`]),
    ...['--workdir', `${folder}/disk/scratch`, '--pwd', home],
    ...binds.flatMap((bind) => ['--bind', bind]),
    // An image's options for Node are not meant for the executor.
    ...['--env', 'NODE_OPTIONS=', hasRoot ? `${folder}/root` : image],
    ...[`${libraryFolder}/${host.libraries.loader}`, '--library-path', libraryFolder, program, ...executorArguments],
  ];
}
