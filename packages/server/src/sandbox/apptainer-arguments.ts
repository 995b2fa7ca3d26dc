// What an Apptainer sandbox can see, as arguments of `apptainer exec` (or `singularity exec`): the image under a writable layer in the
// sandbox's own folder, nothing of the machine's users, no network, and the executor as process 1.

import { executorArguments, home, linkFolder, ownFolder, program, programFiles } from './layout.ts';
import type { NodeLibraries } from './node-libraries.ts';

const libraryFolder = '/opt/millrace/libraries';

/** What is the same for every sandbox of a driver. */
export interface ApptainerHost {
  readonly nodePath: string;
  readonly executorFiles: string;
  readonly libraries: NodeLibraries;
  /** Paths below /proc that root could write to even without capabilities; empty where the worker is not root. */
  readonly covered: readonly string[];
}

/** The beginning of every command line. */
export const isolation = [
  ...['--silent', '--nocolor', 'exec'],
  // Without its init, Apptainer makes the executor process 1, which cannot be killed from inside.
  ...['--containall', '--cleanenv', '--no-home', '--no-privs', '--no-init', '--net', '--network', 'none'],
  // The kernel's settings in /sys would be root's to change.
  ...['--no-mount', 'sys', '--hostname', 'sandbox'],
];

export function renderApptainerArguments(host: ApptainerHost, image: string, folder: string): string[] {
  const binds = [
    ...host.covered.map((path) => `${path}:${path}:ro`),
    `${host.nodePath}:${program}:ro`,
    `${host.executorFiles}:${programFiles}:ro`,
    `${host.libraries.folder}:${libraryFolder}:ro`,
    `${folder}/link:${linkFolder}:ro`,
    `${folder}/own:${ownFolder}`,
    `${folder}/workspace:${home}`,
  ];
  return [
    ...isolation,
    ...['--overlay', `${folder}/overlay`, '--workdir', `${folder}/scratch`, '--pwd', home],
    ...binds.flatMap((bind) => ['--bind', bind]),
    // An image's options for Node are not meant for the executor.
    ...['--env', 'NODE_OPTIONS=', image],
    ...[`${libraryFolder}/${host.libraries.loader}`, '--library-path', libraryFolder, program, ...executorArguments],
  ];
}
