// Reading and writing files of the sandbox. Only regular files are read, up to the given size, and not through links that leave the home
// folder. A named pipe cannot block a call.

import { constants } from 'node:fs';
import { chmod, mkdir, open, writeFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import type { FileReadParams, FileWriteParams } from '@millrace/protocol';
import { CallError, messageOf } from '../wire/call-error.ts';
import { isUsedUp } from './launch.ts';
import { realPathOf, refuseOutside } from './real-path.ts';

/** Throws `not-found` for anything that cannot be read; the message says why. */
export async function readSandboxFile(params: FileReadParams, home: string): Promise<Buffer> {
  const path = resolve(home, params.path);
  await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK).catch((error) => {
    throw new CallError(isUsedUp(error) ? 'limit' : 'not-found', messageOf(error), error);
  });
  const stat = await file.stat();
  if (!stat.isFile()) throw new CallError('not-found', `${path} is not a regular file`);
  if (!params.any_link) refuseOutside(path, await realPathOf(file.fd), home);
  const tooLarge = (bytes: number) => new CallError('too-large', `${path} has ${bytes} bytes, more than ${params.max_bytes}`);
  if (stat.size > params.max_bytes) throw tooLarge(stat.size);
  // Reads one byte more than allowed: the file may be growing, or report no size, as in /proc.
  const chunks: Buffer[] = [];
  let total = 0;
  for await (const chunk of file.createReadStream({ end: params.max_bytes, autoClose: false })) {
    chunks.push(chunk);
    total += chunk.length;
  }
  if (total > params.max_bytes) throw tooLarge(total);
  return Buffer.concat(chunks);
}

export async function writeSandboxFile(params: FileWriteParams, content: Buffer, home: string): Promise<void> {
  const path = resolve(home, params.path);
  const { O_WRONLY, O_CREAT, O_TRUNC, O_NONBLOCK } = constants;
  try {
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, content, { flag: O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK });
    await chmod(path, params.mode);
  } catch (error) {
    throw new CallError(isUsedUp(error) ? 'limit' : 'failed', messageOf(error), error);
  }
}
