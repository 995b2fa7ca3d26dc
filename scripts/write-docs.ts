// Writes the pages that are made from code: docs/configuration.md and docs/cli.md.

import { writeFile } from 'node:fs/promises';
import { renderConfigDoc } from '@millrace/server';
import { renderCliDoc } from 'millrace';

await writeFile(new URL('../docs/configuration.md', import.meta.url), renderConfigDoc());
await writeFile(new URL('../docs/cli.md', import.meta.url), await renderCliDoc());
