// Replaces a small file as a whole: readers, and the next start after a crash, see the old file or the new one.

import { open, rename } from 'node:fs/promises';

/** On disk when this returns, and readable by its owner alone. */
export async function writeWhole(path: string, text: string): Promise<void> {
  const fresh = `${path}.${process.pid}.new`;
  const file = await open(fresh, 'w', 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(fresh, path);
}
