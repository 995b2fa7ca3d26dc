// Writes the pages that are made from code: docs/configuration.md, docs/cli.md, and the table of log events in
// docs/operations.md.

import { readFile, writeFile } from 'node:fs/promises';
import { renderConfigDoc, renderLogEvents } from '@millrace/server';
import { renderCliDoc } from 'millrace';

await writeFile(new URL('../docs/configuration.md', import.meta.url), renderConfigDoc());
await writeFile(new URL('../docs/cli.md', import.meta.url), await renderCliDoc());

/** Between the two marks of the page. */
const page = new URL('../docs/operations.md', import.meta.url);
const [start, end] = ['<!-- log events -->\n', '\n<!-- end of log events -->'];
const text = await readFile(page, 'utf8');
const [before, after] = [text.slice(0, text.indexOf(start) + start.length), text.slice(text.indexOf(end))];
await writeFile(page, `${before}${renderLogEvents()}${after}`);
