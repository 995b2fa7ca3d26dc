// The bytes of a database file, of its write-ahead log, and free on its disk.

import { stat, statfs } from 'node:fs/promises';
import type { StoreSize } from '../../store.ts';

export async function readStoreSize(path: string): Promise<Pick<StoreSize, 'fileBytes' | 'walBytes' | 'freeBytes'>> {
  const bytesOf = (file: string) =>
    stat(file).then(
      ({ size }) => size,
      () => 0,
    ); // the log is missing after a clean close
  const [fileBytes, walBytes, { bavail, bsize }] = await Promise.all([bytesOf(path), bytesOf(`${path}-wal`), statfs(path)]);
  return { fileBytes, walBytes, freeBytes: bavail * bsize };
}
