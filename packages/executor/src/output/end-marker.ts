// The end marker of a command: an escape sequence with a fresh nonce that follows the command's output in the same stream. The scan
// finds it wherever chunks are cut, and passes on every byte as soon as it cannot be part of the marker.

/** Unique, not secret: a program that forges a marker deceives only its own agent. */
export function makeNonce(): string {
  return Math.random().toString(36).slice(2, 14).padEnd(12, '0');
}

/** The command that makes bash print the marker with the last exit code. It spells \e, so a terminal that echoes it does not print a marker. */
export function renderEndCommand(nonce: string): string {
  return `{ \\builtin printf '\\e]8517;${nonce};%s\\a' "$?"; } >/dev/tty 2>/dev/null`;
}

/** The command that makes bash read the agent's command from a file. The backslashes keep aliases out. */
export function renderRunCommand(file: string): string {
  return ` \\builtin \\. ${file} </dev/null >/dev/tty 2>&1`;
}

/** The lines that we type, as a terminal with echo on prints them. No program's own output looks like this. */
export const typedEcho =
  / (?:\\builtin \\\. \S+ <\/dev\/null >\/dev\/tty 2>&1; )?\{ \\builtin printf '\\e\]8517;[a-z0-9]{12};%s\\a' "\$\?"; \} >\/dev\/tty 2>\/dev\/null\n/g;

export interface MarkerScan {
  readonly output: Buffer;
  readonly end?: { readonly exitCode: number; readonly rest: Buffer };
}

const bell = 0x07;
const escapeByte = 0x1b;
const longestCode = 3;

export function openMarkerScan(nonce: string): (chunk: Buffer) => MarkerScan {
  const prefix = Buffer.from(`\x1b]8517;${nonce};`);
  let held: Buffer = Buffer.alloc(0);

  return (chunk) => {
    const bytes = held.length > 0 ? Buffer.concat([held, chunk]) : chunk;
    const at = bytes.indexOf(prefix);
    const stop = at < 0 ? -1 : bytes.indexOf(bell, at + prefix.length);
    if (stop >= 0) {
      const exitCode = Number(bytes.toString('latin1', at + prefix.length, stop));
      return { output: bytes.subarray(0, at), end: { exitCode, rest: bytes.subarray(stop + 1) } };
    }
    const from = at >= 0 && bytes.length - at <= prefix.length + longestCode ? at : findOpenPrefix(bytes, prefix);
    held = bytes.subarray(from);
    return { output: bytes.subarray(0, from) };
  };
}

/** The index at which the bytes end with a beginning of the prefix, or their length if they do not. */
function findOpenPrefix(bytes: Buffer, prefix: Buffer): number {
  const at = bytes.lastIndexOf(escapeByte);
  const tail = bytes.length - at;
  if (at < 0 || tail >= prefix.length) return bytes.length;
  return bytes.subarray(at).equals(prefix.subarray(0, tail)) ? at : bytes.length;
}
