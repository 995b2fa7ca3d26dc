// Where a command reads and writes. `main.ts` passes the streams of the process; a test passes its own.

import type { Readable, Writable } from 'node:stream';

export interface Io {
  readonly stdin: Readable & { readonly isTTY?: boolean; setRawMode?(mode: boolean): unknown };
  readonly stdout: Writable & { readonly isTTY?: boolean; readonly columns?: number; readonly rows?: number };
  readonly stderr: Writable & { readonly isTTY?: boolean; readonly columns?: number };
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Calls the listener at every Ctrl-C until the returned function is called. */
  onInterrupt(listener: () => void): () => void;
}
