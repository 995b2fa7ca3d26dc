// Trajectories are stored as zstd frames that say how long their content is.

import { promisify } from 'node:util';
import { zstdCompress, zstdDecompress } from 'node:zlib';

/** Knowing the size in advance lets zstd allocate smaller tables, which is most of the cost for a typical trajectory. */
export function compress(bytes: Buffer): Promise<Buffer> {
  return promisify(zstdCompress)(bytes, { pledgedSrcSize: bytes.length });
}

/** In larger pieces than Node's 16 KiB, which cost twice the CPU. Still larger ones make the garbage collector stop for longer. */
export function decompress(frame: Uint8Array): Promise<Buffer> {
  const length = readContentLength(frame) ?? largestChunk;
  return promisify(zstdDecompress)(frame, { chunkSize: Math.min(Math.max(length, smallestChunk), largestChunk) });
}

const [smallestChunk, largestChunk] = [64, 1 << 16];

/** The frame's content size (RFC 8878, 3.1.1.1); undefined if it has none. */
export function readContentLength(frame: Uint8Array): number | undefined {
  const view = new DataView(frame.buffer, frame.byteOffset, frame.byteLength);
  const descriptor = frame[4] ?? 0;
  const isSingleSegment = (descriptor & 0x20) !== 0;
  const sizeBytes = [isSingleSegment ? 1 : 0, 2, 4, 8][descriptor >> 6] ?? 0;
  const at = 5 + (isSingleSegment ? 0 : 1) + ([0, 1, 2, 4][descriptor & 3] ?? 0);
  if (sizeBytes === 0 || at + sizeBytes > frame.length) return undefined;
  if (sizeBytes === 1) return view.getUint8(at);
  if (sizeBytes === 2) return view.getUint16(at, true) + 256;
  return sizeBytes === 4 ? view.getUint32(at, true) : Number(view.getBigUint64(at, true));
}
