// Finds a program as a shell would. A program that starts it later may have another PATH, or none.

import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

/** The absolute path of the first of these programs that is installed. */
export function findOnPath(names: readonly string[], path = process.env.PATH ?? ''): string | undefined {
  const folders = path.split(delimiter).filter(Boolean);
  return names.flatMap((name) => folders.map((folder) => join(folder, name))).find(isProgram);
}

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false; // not there, or not to be run
  }
}
