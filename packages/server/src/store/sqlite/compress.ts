// Trajectories are stored compressed, with zstd, on the thread pool.

import { promisify } from 'node:util';
import { zstdCompress, zstdDecompress } from 'node:zlib';

export const decompress = promisify(zstdDecompress);

/** Knowing the size in advance lets zstd allocate smaller tables, which is most of the cost for a typical trajectory. */
export function compress(bytes: Buffer): Promise<Buffer> {
  return promisify(zstdCompress)(bytes, { pledgedSrcSize: bytes.length });
}
