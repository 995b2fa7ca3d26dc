// Writes the declarations of the published packages: tsc emits those of the three public entries and of what they reach, and each package
// gets its own files. `millrace` is self-contained: its files import the protocol's by path, because the protocol is bundled into it.

import { spawnSync } from 'node:child_process';
import { globSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';

/** Writes `<out>/<package>/dist/**.d.ts` of the packages in `root`. */
export async function buildTypes(root: string, out: string): Promise<void> {
  const emitted = await mkdtemp(join(tmpdir(), 'millrace-types-'));
  try {
    const tsc = join(root, 'node_modules/.bin/tsc');
    const { status } = spawnSync(tsc, ['-p', 'tsconfig.build.json', '--outDir', emitted], { cwd: root, stdio: 'inherit' });
    if (status !== 0) throw new Error('tsc could not write the declarations');
    await copyTypes(join(emitted, 'protocol/src'), join(out, 'protocol/dist'));
    await copyTypes(join(emitted, 'client/src'), join(out, 'client/dist'));
    const types = join(out, 'millrace/dist/types');
    const protocol = {
      '@millrace/protocol': join(types, 'protocol/index.js'),
      '@millrace/protocol/plain': join(types, 'protocol/plain/plain.js'),
    };
    await copyTypes(join(emitted, 'protocol/src'), join(types, 'protocol'));
    await copyTypes(join(emitted, 'server/src'), join(types, 'server'), protocol);
  } finally {
    await rm(emitted, { recursive: true, force: true });
  }
}

/** Packages in `inside` are imported by the path that stands for them. */
async function copyTypes(from: string, to: string, inside: Readonly<Record<string, string>> = {}): Promise<void> {
  for (const file of globSync('**/*.d.ts', { cwd: from })) {
    const folder = dirname(join(to, file));
    const rename = (name: string) => {
      const path = inside[name];
      if (path !== undefined) return relative(folder, path);
      return /^\.{1,2}\//.test(name) ? name.replace(/\.ts$/, '.js') : name;
    };
    const text = await readFile(join(from, file), 'utf8');
    await mkdir(folder, { recursive: true });
    await writeFile(join(to, file), withNodeTypes(renameImports(text, rename)));
  }
}

/** tsc writes an import as `from '…'` or `import("…")`. */
function renameImports(text: string, rename: (name: string) => string): string {
  return text.replace(/(\bfrom '|\bimport\("|^import ')([^'"]+)(?=['"])/gm, (_, before: string, name: string) => before + rename(name));
}

/** A user's own tsconfig need not name Node's types for ours to be found. */
function withNodeTypes(text: string): string {
  return /\b(Buffer|AbortSignal|AsyncDisposable|NodeJS)\b/.test(text) ? `/// <reference types="node" />\n${text}` : text;
}
