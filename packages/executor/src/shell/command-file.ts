// The file from which bash reads each command. The agent can write to its folder, so it may find anything there; and the time of the last
// access says whether bash has read the command.

import {
  chmodSync,
  closeSync,
  constants,
  futimesSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';

/** The agent may have replaced the file by a folder, a link or a pipe without a reader, or filled the folder. */
export function writeCommand(file: string, command: Buffer): void {
  try {
    writePlainFile(file, command);
  } catch {
    chmodSync(dirname(file), 0o700);
    for (const name of readdirSync(dirname(file))) rmSync(join(dirname(file), name), { recursive: true, force: true });
    writePlainFile(file, command);
  }
}

/** Returns a function that says whether any process has read the file since it was written. Always true where the disk does not record it. */
export function openReadCheck(file: string): () => boolean {
  const hasTime = () => {
    try {
      return statSync(file).atimeMs !== 0;
    } catch {
      return true; // the command has removed the file: it ran
    }
  };
  writeCommand(file, Buffer.from(':'));
  readFileSync(file);
  return hasTime() ? hasTime : () => true;
}

function writePlainFile(file: string, content: Buffer): void {
  const { O_WRONLY, O_CREAT, O_TRUNC, O_NOFOLLOW, O_NONBLOCK } = constants;
  const descriptor = openSync(file, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK, 0o600);
  try {
    writeFileSync(descriptor, content);
    futimesSync(descriptor, 0, Date.now() / 1000);
  } finally {
    closeSync(descriptor);
  }
}
