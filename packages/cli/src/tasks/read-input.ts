// Reads the JSON lines that a command was given: a file, or standard input.

import { readFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { messageOf } from '@millrace/protocol';
import { UsageError } from '../command/command.ts';
import type { Io } from '../terminal/io.ts';

export interface InputText {
  /** The file's name as the user wrote it, or `stdin`; errors begin with it. */
  readonly source: string;
  readonly content: string;
  /** What each line stands for, if it is not a line of a file. */
  readonly names?: readonly string[];
}

/** `path` absent or `-` is standard input; a terminal there is a UsageError, because nothing would ever come. */
export async function readInput(path: string | undefined, io: Io): Promise<InputText> {
  if (path === undefined && io.stdin.isTTY === true) throw new UsageError('give a file, or JSON lines on standard input');
  if (path === undefined || path === '-') return { source: 'stdin', content: await text(io.stdin) };
  try {
    return { source: path, content: await readFile(path, 'utf8') };
  } catch (error) {
    throw new UsageError(`cannot read ${path}: ${messageOf(error)}`);
  }
}
