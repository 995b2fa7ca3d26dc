// Characters that V8 and Rust's tokenizers classify or normalise differently, because one of them has newer Unicode tables.

import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { referencePython, tokenizersFolder } from './collection.ts';

const tables = z.object({ classes: z.record(z.string(), z.array(z.int())), forms: z.record(z.string(), z.record(z.string(), z.string())) });

/** Whether a text has such a character. The tables of the reference are cached in a file, because reading them takes a minute. */
export function openNewCharacters(): (text: string) => boolean {
  const cached = join(tokenizersFolder, 'tables.json');
  if (!existsSync(cached))
    writeFileSync(cached, execFileSync(referencePython, [join(import.meta.dirname, 'reference.py'), '--tables'], { maxBuffer: 1 << 30 }));
  const { classes, forms } = tables.parse(JSON.parse(readFileSync(cached, 'utf8')));
  const differing = new Set<number>();
  for (const [name, members] of Object.entries(classes)) {
    const ours = new RegExp(`^\\p{${name === 'Han' ? 'Script=Han' : name}}$`, 'u');
    const theirs = new Set(members);
    for (let code = 2; code < 0x11_0000; code++) {
      if (code >= 0xd800 && code < 0xe000) continue;
      if (ours.test(String.fromCodePoint(code)) !== theirs.has(code)) differing.add(code);
    }
  }
  for (const [name, changed] of Object.entries(forms))
    for (let code = 128; code < 0x11_0000; code++) {
      const character = String.fromCodePoint(code);
      if (!character.isWellFormed()) continue;
      if (character.normalize(name) !== (changed[character] ?? character)) differing.add(code);
    }
  return (text) => Array.from(text).some((character) => differing.has(character.codePointAt(0) ?? 0));
}
