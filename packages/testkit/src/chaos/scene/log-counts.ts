// Follows the log of a service and counts its warnings and errors by event: the evidence that a fault reached the service.

import { closeSync, openSync, readSync } from 'node:fs';

export interface LogCounts extends Disposable {
  /** Warnings and errors so far, by event. */
  read(): ReadonlyMap<string, number>;
  /** Lines of any event that contain the text. */
  count(text: 'ENOSPC' | 'clock-jump'): number;
}

export function openLogCounts(path: string): LogCounts {
  const file = openSync(path, 'r');
  const events = new Map<string, number>();
  const texts = { ENOSPC: 0, 'clock-jump': 0 };
  const piece = Buffer.alloc(2 ** 20);
  let rest = '';
  const follow = () => {
    for (let size = readSync(file, piece); size > 0; size = readSync(file, piece)) {
      const lines = (rest + piece.toString('latin1', 0, size)).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) countLine(line);
    }
  };
  const countLine = (line: string) => {
    for (const text of ['ENOSPC', 'clock-jump'] as const) if (line.includes(text)) texts[text] += 1;
    const found = /"level":"(?:warn|error)".*"event":"([a-z-]+)"/.exec(line)?.[1];
    if (found !== undefined) events.set(found, (events.get(found) ?? 0) + 1);
  };
  return {
    read() {
      follow();
      return events;
    },
    count(text) {
      follow();
      return texts[text];
    },
    [Symbol.dispose]: () => closeSync(file),
  };
}
