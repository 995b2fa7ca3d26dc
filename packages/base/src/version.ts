// The version in the package.json that this process was installed with.

import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { tryJson } from '@millrace/protocol';

/** From the nearest package.json above this file, whether it runs from source or is built. */
export async function readVersion(): Promise<string> {
  for (let folder = import.meta.dirname; ; folder = dirname(folder)) {
    const text = await readFile(join(folder, 'package.json'), 'utf8').catch(() => ''); // there is none in this folder
    const found: unknown = tryJson(text);
    if (typeof found === 'object' && found !== null && 'version' in found && typeof found.version === 'string') return found.version;
    if (folder === dirname(folder)) return 'unknown';
  }
}
