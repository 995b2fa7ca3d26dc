// Writes the pages that are made from code: docs/configuration.md, docs/cli.md, the tables of log events in
// docs/operations.md and of metrics in docs/traces.md, what was proven for each trainer and version in docs/trainers.md, and the picture of packages in ARCHITECTURE.md.

import { readFile, writeFile } from 'node:fs/promises';
import { renderConfigDoc, renderLogEvents, renderMetrics } from '@millrace/server';
import { renderCliDoc } from 'millrace';
import { readProofs, renderProofs } from '../world/trainers/bed/proof-table.ts';
import { readVersionProofs, renderVersionProofs } from '../world/versions/version-table.ts';
import { drawPackages } from './draw-packages.ts';

await writeFile(new URL('../docs/configuration.md', import.meta.url), renderConfigDoc());
await writeFile(new URL('../docs/cli.md', import.meta.url), await renderCliDoc());

await writeBetween('../ARCHITECTURE.md', 'packages', drawPackages());
await writeBetween('operations.md', 'log events', renderLogEvents());
await writeBetween('traces.md', 'metrics', renderMetrics());
await writeBetween('trainers.md', 'trainers', renderProofs(readProofs()));
await writeBetween('trainers.md', 'versions', renderVersionProofs(readVersionProofs()));

/** Between the two marks of the page. */
async function writeBetween(name: string, mark: string, content: string): Promise<void> {
  const page = new URL(`../docs/${name}`, import.meta.url);
  const [start, end] = [`<!-- ${mark} -->\n`, `\n<!-- end of ${mark} -->`];
  const text = await readFile(page, 'utf8');
  const [before, after] = [text.slice(0, text.indexOf(start) + start.length), text.slice(text.indexOf(end))];
  await writeFile(page, `${before}${content}${after}`);
}
