// The chunks of a reply as one buffer. A long one is copied in steps: twenty megabytes at once would hold up the event loop.

import type { Steps } from '@millrace/base/pace';

const stepBytes = 1 << 20;

export function* joinChunks(chunks: readonly Buffer[]): Steps<Buffer> {
  const total = chunks.reduce((sum, { length }) => sum + length, 0);
  if (total <= stepBytes) return Buffer.concat(chunks, total);
  const joined = Buffer.allocUnsafeSlow(total);
  let at = 0;
  let unpaused = 0;
  for (const chunk of chunks) {
    at += chunk.copy(joined, at);
    unpaused += chunk.length;
    if (unpaused < stepBytes) continue;
    unpaused = 0;
    yield;
  }
  return joined;
}
