// Finds Apptainer on this machine, under either of its names.

import { findOnPath } from '../../base/find-on-path.ts';

/** The absolute path of the program, or undefined if it is not installed. */
export function findApptainer(path = process.env.PATH ?? ''): string | undefined {
  return findOnPath(['apptainer', 'singularity'], path);
}
