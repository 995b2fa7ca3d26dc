// The end of a command, in band: an escape sequence with a fresh nonce, which bash prints after the command's output.
// It is found wherever the chunks are cut, and nothing that is not it is held back once it cannot be it.

/** What bash runs to say that a command has ended, with its exit code. Written with \e, so that a terminal that echoes it does not send it. */
export function renderEndCommand(nonce: string): string {
  return `{ builtin printf '\\e]8517;${nonce};%s\\a' "$?"; } >/dev/tty 2>/dev/null`;
}

/** A terminal left with echo on shows the typed lines; no program's own output looks like them. */
export const typedEcho =
  / (?:\. \S+ <\/dev\/null >\/dev\/tty 2>&1; )?\{ builtin printf '\\e\]8517;[a-z0-9]{12};%s\\a' "\$\?"; \} >\/dev\/tty 2>\/dev\/null\n/g;

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
    const from = at >= 0 && bytes.length - at <= prefix.length + longestCode ? at : openPrefix(bytes, prefix);
    held = bytes.subarray(from);
    return { output: bytes.subarray(0, from) };
  };
}

/** Where the beginning of the prefix stands at the very end of the bytes; their length where it does not. */
function openPrefix(bytes: Buffer, prefix: Buffer): number {
  const at = bytes.lastIndexOf(escapeByte);
  const tail = bytes.length - at;
  if (at < 0 || tail >= prefix.length) return bytes.length;
  return bytes.subarray(at).equals(prefix.subarray(0, tail)) ? at : bytes.length;
}
