// One running cell. It is over when its output has ended and its reply has arrived, or when its process has ended.

import type { PythonRunReply } from '@millrace/protocol';
import { openMarkerScan } from '../output/end-marker.ts';
import type { Frame } from '../wire/frames.ts';

export type CellEnd =
  | { readonly alive: true; readonly failed: boolean; readonly images: PythonRunReply['images']; readonly data: Buffer }
  | { readonly alive: false; readonly exitCode: number };

export interface PythonCell {
  takeOutput(chunk: Buffer): void;
  /** The first frame says that the cell has begun; the second is its reply. Throws for a frame that no host sends. */
  takeFrame(frame: Frame): void;
  interrupt(): void;
  end(end: CellEnd): void;
}

export interface CellParts {
  readonly onOutput: (chunk: Buffer) => void;
  /** Receives output that arrives after the end of the cell. */
  readonly onLate: (chunk: Buffer) => void;
  readonly onEnd: (end: CellEnd) => void;
  readonly interrupt: () => void;
}

export function openCell(nonce: string, { onOutput, onLate, onEnd, interrupt }: CellParts): PythonCell {
  const scan = openMarkerScan(nonce);
  let hasBegun = false;
  let wantsInterrupt = false;
  let failed: boolean | undefined;
  let reply: { readonly images: PythonRunReply['images']; readonly data: Buffer } | undefined;

  function settle(): void {
    if (failed !== undefined && reply) onEnd({ alive: true, failed, ...reply });
  }
  return {
    takeOutput(chunk) {
      if (failed !== undefined) return onLate(chunk);
      const { output, end } = scan(chunk);
      if (output.length > 0) onOutput(output);
      if (!end) return;
      failed = end.exitCode !== 0;
      if (end.rest.length > 0) onLate(end.rest);
      settle();
    },
    takeFrame(frame) {
      if (hasBegun) reply = parseReply(frame);
      hasBegun = true;
      if (wantsInterrupt && !reply) interrupt();
      wantsInterrupt = false;
      settle();
    },
    interrupt() {
      // A signal sent before the cell has begun would be lost, so it waits.
      if (hasBegun) interrupt();
      else wantsInterrupt = true;
    },
    end: onEnd,
  };
}

/** `maxPythonImages` and `maxPythonImageBytes` of the protocol. The host respects them; a cell that writes into its host's pipe may not. */
export const maxImages = 16;
export const maxImageBytes = 4 << 20;

function parseReply({ head, body }: Frame): { images: PythonRunReply['images']; data: Buffer } {
  const { images } = head as { images: PythonRunReply['images'] };
  const fits = images.every(
    ({ mime, bytes }) => typeof mime === 'string' && Number.isInteger(bytes) && bytes >= 0 && bytes <= maxImageBytes,
  );
  const total = images.reduce((sum, { bytes }) => sum + bytes, 0);
  if (!fits || images.length > maxImages || total !== body.length) throw new Error('no host sends this reply');
  return { images: images.map(({ mime, bytes }) => ({ mime: mime.slice(0, 100), bytes })), data: body };
}
