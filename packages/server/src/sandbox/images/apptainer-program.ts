// Finds Apptainer on this machine, under either of its names.

import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/** The absolute path of the program, or undefined if it is not installed. */
export function findApptainer(path = process.env.PATH ?? ''): string | undefined {
  const folders = path.split(delimiter).filter(Boolean);
  return ['apptainer', 'singularity'].flatMap((name) => folders.map((folder) => join(folder, name))).find((file) => existsSync(file));
}
