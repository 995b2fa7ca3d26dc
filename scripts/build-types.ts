// Writes the declarations of the published packages: tsc emits those of the three public entries and of what they reach, and each package
// gets its own files. `millrace` is self-contained: other packages of the workspace are bundled into it, so its declarations name their
// files by path, and only the files that a user's types can reach are there.

import { spawnSync } from 'node:child_process';
import { existsSync, globSync } from 'node:fs';
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
    await copyReached(emitted, 'scenarios/src/public.d.ts', join(out, 'millrace/dist/types'));
  } finally {
    await rm(emitted, { recursive: true, force: true });
  }
}

/** All declarations of one package, which imports others by their names. */
async function copyTypes(from: string, to: string): Promise<void> {
  for (const file of globSync('**/*.d.ts', { cwd: from })) {
    const rename = (name: string) => (/^\.{1,2}\//.test(name) ? name.replace(/\.ts$/, '.js') : name);
    await writeTypes(join(to, file), renameImports(await readFile(join(from, file), 'utf8'), rename));
  }
}

/** The declarations that `entry` reaches, in one folder per package. */
async function copyReached(emitted: string, entry: string, to: string): Promise<void> {
  const reached = new Set([entry]);
  for (const file of reached) {
    const reach = (name: string) => {
      const path = name.startsWith('@millrace/') ? findEntry(emitted, name) : join(dirname(file), name.replace(/\.ts$/, '.d.ts'));
      reached.add(path);
      return relative(dirname(file.replace('/src/', '/')), path.replace('/src/', '/').replace(/\.d\.ts$/, '.js'));
    };
    const text = await nameFiles(emitted, await readFile(join(emitted, file), 'utf8'));
    const isOurs = (name: string) => /^(\.{1,2}|@millrace)\//.test(name);
    await writeTypes(
      join(to, file.replace('/src/', '/')),
      renameImports(text, (name) => (isOurs(name) ? toRelative(reach(name)) : name)),
    );
  }
}

/** An import through the index of a package reaches all of it; its names are imported from their own files instead. */
async function nameFiles(emitted: string, text: string): Promise<string> {
  const statement = /^(import|export) type \{([^}]*)\} from '(@millrace\/[a-z]+)';$/gm;
  const parts = await Promise.all(
    [...text.matchAll(statement)].map(async ([whole, keyword, names = '', name = '']) => {
      const index = await readFile(join(emitted, findEntry(emitted, name)), 'utf8');
      const files = names
        .split(',')
        .flatMap((one) => (one.trim() === '' ? [] : [`${keyword} type { ${one.trim()} } from '${findFile(index, name, one)}';`]));
      return [whole, files.join('\n')] as const;
    }),
  );
  return parts.reduce((all, [whole, files]) => all.replace(whole, files), text);
}

function findFile(index: string, name: string, exported: string): string {
  const [own = ''] = exported.trim().split(' as ');
  for (const [, names = '', file = ''] of index.matchAll(/^export (?:type )?\{([^}]*)\} from '\.\/([^']+)\.ts';$/gm))
    if (names.split(',').some((one) => one.trim().replace(/^type /, '') === own)) return `${name}/${file}`;
  throw new Error(`${name} exports no ${own}`);
}

/** The emitted file of `@millrace/model`, or of `@millrace/base/clock`. */
function findEntry(emitted: string, name: string): string {
  const [, folder = '', part = 'index'] = /^@millrace\/([a-z]+)(?:\/(.+))?$/.exec(name) ?? [];
  const path = join(folder, 'src', `${part}.d.ts`);
  return existsSync(join(emitted, path)) ? path : join(folder, 'src', part, `${part}.d.ts`);
}

async function writeTypes(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, withNodeTypes(text));
}

function toRelative(path: string): string {
  return path.startsWith('.') ? path : `./${path}`;
}

/** tsc writes an import as `from '…'` or `import("…")`. */
function renameImports(text: string, rename: (name: string) => string): string {
  return text.replace(/(\bfrom '|\bimport\("|^import ')([^'"]+)(?=['"])/gm, (_, before: string, name: string) => before + rename(name));
}

/** A user's own tsconfig need not name Node's types for ours to be found. */
function withNodeTypes(text: string): string {
  return /\b(Buffer|AbortSignal|AsyncDisposable|NodeJS)\b/.test(text) ? `/// <reference types="node" />\n${text}` : text;
}
