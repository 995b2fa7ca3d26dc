// Writes the pages that are made from code: docs/configuration.md.

import { writeFile } from 'node:fs/promises';
import { renderConfigDoc } from '@millrace/server';

await writeFile(new URL('../docs/configuration.md', import.meta.url), renderConfigDoc());
