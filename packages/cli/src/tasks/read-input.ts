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
  if (path === undefined || path === '-') return checkLines({ source: 'stdin', content: await text(io.stdin) });
  try {
    return checkLines({ source: path, content: await readFile(path, 'utf8') });
  } catch (error) {
    if (error instanceof UsageError) throw error;
    const isFolder = error instanceof Error && 'code' in error && error.code === 'EISDIR';
    throw new UsageError(
      isFolder ? `${path} is a folder; one with Harbor tasks needs --harbor` : `cannot read ${path}: ${messageOf(error)}`,
    );
  }
}

/** A list or an object over several lines is JSON, but not JSON lines: each of its lines would be refused for a reason that does not help. */
function checkLines(input: InputText): InputText {
  const { source, content } = input;
  const [first = ''] = content
    .replace(/^\ufeff/, '')
    .trimStart()
    .split('\n', 1);
  if (!/^\[|^\{\s*$/.test(first)) return input;
  const [what, filter] = first.startsWith('[') ? ['a JSON list', '.[]'] : ['JSON over several lines', '.'];
  throw new UsageError(`${source} is ${what}, and each line must be a task of its own; jq -c '${filter}' writes it so`);
}
