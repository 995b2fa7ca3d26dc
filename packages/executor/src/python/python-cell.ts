// One running cell: over when both its output has ended and its reply is there, or when its process has ended.

import type { PythonRunReply } from '@millrace/protocol';
import { openMarkerScan } from '../output/end-marker.ts';
import type { Frame } from '../wire/frames.ts';

export type CellEnd =
  | { readonly alive: true; readonly failed: boolean; readonly images: PythonRunReply['images']; readonly data: Buffer }
  | { readonly alive: false; readonly exitCode: number };

export interface Cell {
  takeOutput(chunk: Buffer): void;
  /** The first says that the cell has begun, the second is its reply. Throws for what the host cannot have sent. */
  takeFrame(frame: Frame): void;
  interrupt(): void;
  end(end: CellEnd): void;
}

export interface CellParts {
  readonly onOutput: (chunk: Buffer) => void;
  /** Gets what comes after the end of the cell's output. */
  readonly onLate: (chunk: Buffer) => void;
  readonly onEnd: (end: CellEnd) => void;
  readonly interrupt: () => void;
}

export function openCell(nonce: string, { onOutput, onLate, onEnd, interrupt }: CellParts): Cell {
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
      // Before the cell has begun it would be lost: it waits.
      if (hasBegun) interrupt();
      else wantsInterrupt = true;
    },
    end: onEnd,
  };
}

/** What the worker takes at most; the host keeps to it, and a cell that writes into its host's pipe may not. */
const maxImages = 16;
const maxImageBytes = 4 << 20;

function parseReply({ head, body }: Frame): { images: PythonRunReply['images']; data: Buffer } {
  const { images } = head as { images: PythonRunReply['images'] };
  const fits = images.every(
    ({ mime, bytes }) => typeof mime === 'string' && Number.isInteger(bytes) && bytes >= 0 && bytes <= maxImageBytes,
  );
  const total = images.reduce((sum, { bytes }) => sum + bytes, 0);
  if (!fits || images.length > maxImages || total !== body.length) throw new Error('not the reply of a host');
  return { images: images.map(({ mime, bytes }) => ({ mime: mime.slice(0, 100), bytes })), data: body };
}
