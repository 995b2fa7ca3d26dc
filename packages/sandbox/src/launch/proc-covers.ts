// The parts of /proc that no sandbox may use: settings of the whole machine, and files that not every user may read.

import { lstatSync, readdirSync } from 'node:fs';
import { basename, join } from 'node:path';

/** `from` is mounted read-only on `path`. */
export interface ProcCover {
  readonly path: string;
  readonly from: string;
}

/** The keys of the worker's session, and how many keys each user has. The filter of system calls refuses all other access to keys. */
const keyFiles = ['keys', 'key-users'];

/**
 * Access to root's files in /proc needs no capability, so under a root worker the agent could write them too. The machine's folders are
 * made read-only, and files that are writable or not readable by every user are hidden behind /dev/null. So are the lists of keys.
 */
export function readProcCovers(): ProcCover[] {
  // By name only: with file types, Node reads the attributes of a process that has just ended, and throws.
  return readdirSync('/proc')
    .filter((name) => !/^\d+$/.test(name))
    .flatMap((name) => {
      const path = `/proc/${name}`;
      if (keyFiles.includes(name)) return [{ path, from: '/dev/null' }];
      const found = lstatSync(path);
      if (found.isDirectory()) return [{ path, from: path }];
      return found.isFile() && (found.mode & 0o777) !== 0o444 ? [{ path, from: '/dev/null' }] : [];
    });
}

/**
 * For agents that are not root on the machine: the kernel refuses them what only root may use. What every user may write is covered, with
 * the folder that it is in, and so are the lists of keys.
 */
export function readOpenProcCovers(): ProcCover[] {
  return readProcCovers().filter(({ path }) => keyFiles.includes(basename(path)) || isOpen(path));
}

const writableByAll = 0o002;

function isOpen(path: string): boolean {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined || found.isSymbolicLink()) return false;
  if ((found.mode & writableByAll) !== 0) return true;
  return found.isDirectory() && listNames(path).some((name) => isOpen(join(path, name)));
}

function listNames(path: string): string[] {
  try {
    return readdirSync(path);
  } catch {
    return []; // it is gone, or this user may not enter it, and its agents neither
  }
}

/** For an ordinary user with Apptainer, where the kernel protects everything else. */
export function readKeyCovers(): ProcCover[] {
  return readProcCovers().filter(({ path }) => keyFiles.includes(basename(path)));
}
