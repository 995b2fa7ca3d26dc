// Streams in memory for a command under test, and a way to press Ctrl-C.

import { PassThrough, Readable, Writable } from 'node:stream';
import { runMillrace } from '../src/main.ts';
import type { Io } from '../src/terminal/io.ts';

export interface FakeIo extends Io {
  out(): string;
  err(): string;
  interrupt(): void;
}

export function openIo(options: { stdin?: string; env?: Record<string, string>; terminal?: boolean } = {}): FakeIo {
  const listeners = new Set<() => void>();
  const collect = () => {
    let text = '';
    const stream = new Writable({
      write(chunk, _encoding, done) {
        text += chunk;
        done();
      },
    });
    return { stream: Object.assign(stream, { isTTY: options.terminal ?? false, columns: 80, rows: 24 }), read: () => text };
  };
  const [out, err] = [collect(), collect()];
  const stdin = options.stdin === undefined ? Object.assign(new PassThrough(), { isTTY: true }) : Readable.from([options.stdin]);
  return {
    stdin,
    stdout: out.stream,
    stderr: err.stream,
    env: options.env ?? {},
    onInterrupt(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    out: out.read,
    err: err.read,
    interrupt: () => {
      for (const listener of listeners) listener();
    },
  };
}

export async function millrace(argv: readonly string[], io: FakeIo): Promise<{ code: number; out: string; err: string }> {
  const code = await runMillrace(argv, io);
  return { code, out: io.out(), err: io.err() };
}
