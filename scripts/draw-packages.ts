// Draws the packages from the imports of their sources, as a Mermaid graph for ARCHITECTURE.md. An arrow that follows from others is left
// out, so that the picture shows the order.

import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..');

/** The Python packages and the testkit are not part of the service. */
const leftOut = new Set(['client-python', 'trainers-python', 'testkit']);

export function drawPackages(): string {
  const lines = new Map<string, number>();
  const arrows = new Map<string, Set<string>>();
  for (const path of globSync('packages/*/{src,native}/**/*.{ts,c,h}', { cwd: root })) {
    const [, name = ''] = path.split('/');
    if (leftOut.has(name)) continue;
    const text = readFileSync(join(root, path), 'utf8');
    lines.set(name, (lines.get(name) ?? 0) + text.trimEnd().split('\n').length);
    const imported = [...text.matchAll(/from '@millrace\/([a-z]+)(?:\/[^']*)?'/g)].map(([, to = '']) => to);
    arrows.set(name, new Set([...(arrows.get(name) ?? []), ...imported.filter((to) => to !== name && !leftOut.has(to))]));
  }
  const names = [...lines.keys()].sort();
  const boxes = names.map((name) => `  ${name}["${name}<br/>${Math.round((lines.get(name) ?? 0) / 1000)}k lines"]`);
  const shown = names.flatMap((from) =>
    [...(arrows.get(from) ?? [])]
      .sort()
      .filter((to) => ![...(arrows.get(from) ?? [])].some((other) => other !== to && reaches(arrows, other, to)))
      .map((to) => `  ${from} --> ${to}`),
  );
  return ['```mermaid', 'graph TD', ...boxes, ...shown, '```'].join('\n');
}

function reaches(arrows: ReadonlyMap<string, ReadonlySet<string>>, from: string, to: string): boolean {
  const next = arrows.get(from) ?? new Set<string>();
  return next.has(to) || [...next].some((one) => reaches(arrows, one, to));
}
