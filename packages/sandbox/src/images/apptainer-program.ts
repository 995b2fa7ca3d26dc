// Finds Apptainer on this machine, under either of its names.

import { findOnPath } from '@millrace/base/find-on-path';

/** The absolute path of the program, or undefined if it is not installed. */
export function findApptainer(path = process.env.PATH ?? ''): string | undefined {
  return findOnPath(['apptainer', 'singularity'], path);
}
