// Writes the pages that are made from code: docs/configuration.md and docs/cli.md.

import { writeFile } from 'node:fs/promises';
import { renderCliDoc } from 'millrace';
import { renderConfigDoc } from '@millrace/server';

await writeFile(new URL('../docs/configuration.md', import.meta.url), renderConfigDoc());
await writeFile(new URL('../docs/cli.md', import.meta.url), await renderCliDoc());
