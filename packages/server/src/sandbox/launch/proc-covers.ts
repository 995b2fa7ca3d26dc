// What of /proc no sandbox may have: settings of the whole machine, and files that are not for everyone.

import { readdirSync, statSync } from 'node:fs';

/** `from` is mounted read-only on `path`. */
export interface ProcCover {
  readonly path: string;
  readonly from: string;
}

/**
 * Root's files in /proc ask for no capability: to a worker that is root, they belong to the agent too. The machine's folders become
 * read-only, and the files that are not for everyone to read, or are to be written, empty.
 */
export function readProcCovers(): ProcCover[] {
  return readdirSync('/proc', { withFileTypes: true })
    .filter(({ name }) => !/^\d+$/.test(name))
    .flatMap((entry) => {
      const path = `/proc/${entry.name}`;
      if (entry.isDirectory()) return [{ path, from: path }];
      return entry.isFile() && (statSync(path).mode & 0o777) !== 0o444 ? [{ path, from: '/dev/null' }] : [];
    });
}
