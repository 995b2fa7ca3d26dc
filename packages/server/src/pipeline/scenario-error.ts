// What an exception from a scenario says: where in the scenario's file it came from, for the failure, and its whole stack, for the
// log.

import { fileURLToPath } from 'node:url';

/** `file:line` of the first stack frame in the file; undefined if there is none. Follows the causes of an error. */
export function findPlace(error: unknown, file: string | undefined): string | undefined {
  if (file === undefined) return undefined;
  for (const { stack = '' } of causesOf(error)) {
    for (const frame of stack.split('\n')) {
      const [, source = '', line] = /^\s+at .*?((?:file:\/\/)?\/.+):(\d+):\d+\)?$/.exec(frame) ?? [];
      if (toPath(source) === file) return `${file}:${line}`;
    }
  }
  return undefined;
}

/** The stacks of an error and its causes. */
export function renderStack(error: Error): string {
  return causesOf(error)
    .map(({ stack, message }) => stack ?? message)
    .join('\ncaused by: ');
}

function causesOf(error: unknown): Error[] {
  const found: Error[] = [];
  for (let next = error; next instanceof Error && !found.includes(next); next = next.cause) found.push(next);
  return found;
}

function toPath(source: string): string {
  if (!source.startsWith('file://')) return source;
  try {
    return fileURLToPath(source);
  } catch {
    return source; // not a path on this machine
  }
}
