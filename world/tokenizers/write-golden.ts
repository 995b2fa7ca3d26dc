// Writes what Rust's tokenizers make of the small tokenizers of the unit tests. Run it with: node world/tokenizers/write-golden.ts

import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { tinyTexts, tinyTokenizers } from '../../packages/model/test/tokenizer/tiny-tokenizers.ts';
import { referencePython } from './collection.ts';

export const goldenPath = join(import.meta.dirname, '../../packages/model/test/tokenizer/rust-ids.json');

export function renderGolden(): string {
  const folder = mkdtempSync(join(tmpdir(), 'tiny-tokenizers-'));
  try {
    const rows = Object.entries(tinyTokenizers).map(([name, file]) => {
      const path = join(folder, 'tokenizer.json');
      writeFileSync(path, JSON.stringify(file));
      const ask = (ids: readonly (readonly number[])[]): { ids: number[][]; decoded: string[] } => {
        const input = JSON.stringify({ texts: tinyTexts, control: [], ids });
        return JSON.parse(execFileSync(referencePython, [join(import.meta.dirname, 'reference.py'), path], { input }).toString());
      };
      const { ids } = ask([]);
      const { decoded } = ask(ids);
      return `  ${JSON.stringify(name)}: [\n${ids.map((one, index) => `    ${JSON.stringify({ ids: one, decoded: decoded[index] })}`).join(',\n')}\n  ]`;
    });
    return `{\n${rows.join(',\n')}\n}\n`;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

if (import.meta.main) writeFileSync(goldenPath, renderGolden());
